#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "harness/cli/backend_options.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/judging.hpp"
#include "harness/cli/program.hpp"
#include "harness/trace/golden_file.hpp"
#include "harness/trace/step_json.hpp"

namespace kvproof::harness {
namespace {

namespace po = boost::program_options;

/// What `golden verify` was told. One backend serves all files: starting it may take long.
struct VerifyRequest {
  std::string backend;
  Backend& engine;
  std::optional<std::string> model;  ///< folder; absent = the golden's own
  const OptionValues& values;
};

std::filesystem::path model_folder(const VerifyRequest& request, const std::string& file) {
  if (request.model) return *request.model;
  const auto parent = std::filesystem::path(file).parent_path();
  return parent.empty() ? "." : parent;
}

void require_same_weights(const GoldenFile& golden, const Oracle& oracle) {
  const std::string found = oracle.weights().sha256();
  if (found != golden.weights_sha256)
    throw DataError({oracle.weights().folder().string(), "weights_sha256 is " + found, fmt::format("{} ({})", golden.weights_sha256, golden.where),
                     "These are other weights than the golden's: nothing was compared."});
}

/// All of a config that the numbers follow from.
auto facts_of_numbers(const Config& c) {
  return std::tuple(c.vocab_size, c.n_positions, c.n_embd, c.n_layer, c.n_head, c.n_inner, c.activation_function, c.layer_norm_epsilon, c.scale_attn_weights,
                    c.scale_attn_by_inverse_layer_idx, c.reorder_and_upcast_attn, c.tie_word_embeddings);
}

/// The hash is of the weights alone, but another activation makes other numbers of the same weights.
void require_same_config(const GoldenFile& golden, const Weights& weights) {
  const auto found = nlohmann::json::parse(weights.config_text()), expected = nlohmann::json::parse(golden.config);
  if (facts_of_numbers(weights.config()) == facts_of_numbers(parse_config(expected, golden.where + ": config"))) return;
  std::vector<std::string> fields;
  for (const auto& change : nlohmann::json::diff(expected, found)) fields.push_back(change.at("path").get<std::string>().substr(1));
  throw DataError({(weights.folder() / "config.json").string(), fmt::format("other values of {}", fmt::join(fields, ", ")), fmt::format("those of {}", golden.where),
                   "Nothing was compared."});
}

CaseReport verify(const VerifyRequest& request, const std::string& file) {
  const GoldenFile golden = read_golden(file);
  const std::filesystem::path folder = model_folder(request, file);
  const Oracles oracles{{"main", Oracle::open(folder)}};
  require_same_weights(golden, *oracles.at("main"));
  require_same_config(golden, oracles.at("main")->weights());
  std::vector<Expectation> expected = expect_from_golden(golden, oracles.at("main")->facts());

  CaseReport report{.name = file, .backend = request.backend};
  report.tolerance = tolerance_from(request.values, {golden.atol, golden.rtol, false, "file"});
  report.replay = fmt::format("{} golden verify {}{}{}{}", program(), quoted(file), backend_arguments(request.values),
                              request.model ? " --model " + quoted(*request.model) : "", tolerance_arguments(request.values));
  if (report.tolerance.derived) add_noise(expected, golden.trace, oracles);
  (void)play_known({golden.trace, folder, expected, oracles}, request.engine, report);
  return report;
}

std::vector<std::string> files_of(const OptionValues& values, const std::string& verb) {
  if (values.count("file") != 0) return values["file"].as<std::vector<std::string>>();
  throw UsageError({"kvproof " + verb, "no file is named", "at least one", fmt::format("Try kvproof {} --help", verb)});
}

ExitCode run_verify(const Arguments& arguments) {
  OptionTable table("options");
  add_backend_options(table);
  table.add_options()("model", po::value<std::string>(), "model folder (default: the folder of the golden)");
  add_tolerance_options(table);
  add_report_option(table);
  const auto values = parse_options({"golden verify", "file", "FILE…"}, table, arguments);
  if (!values) return kExpected;
  const std::vector<std::string> files = files_of(*values, "golden verify");
  (void)tolerance_from(*values, {});  // a wrong command line is one message, not one per file
  const auto backend = backend_from(*values);
  VerifyRequest request{(*values)["backend"].as<std::string>(), *backend, std::nullopt, *values};
  if (values->count("model") != 0) request.model = (*values)["model"].as<std::string>();
  Tally tally(request.backend, wants_jsonl(*values));
  for (const std::string& file : files)
    tally.add(guarded_case(file, request.backend, [&] { return verify(request, file); }));
  return tally.finish("file");
}

std::string recorded_text(const Recorded& recorded) {
  const auto shape = [](const char* what, const Tensor& tensor) { return fmt::format("   {} [{}]", what, fmt::join(tensor.shape, ", ")); };
  std::string text;
  if (recorded.logits) text += shape("logits", *recorded.logits);
  if (recorded.keys) text += shape("keys and values", *recorded.keys);
  if (recorded.ids) text += fmt::format("   ids {}", nlohmann::json(*recorded.ids).dump());
  return text;
}

ExitCode run_show(const Arguments& arguments) {
  const auto values = parse_options({"golden show", "file", "FILE…"}, OptionTable("options"), arguments);
  if (!values) return kExpected;
  for (const std::string& file : files_of(*values, "golden show")) {
    const GoldenFile golden = read_golden(file);
    std::cout << fmt::format("{}: suite {}, atol {:g}, rtol {:g}\nproducer {}\nweights  {}\n", file, golden.suite, golden.atol, golden.rtol, golden.producer,
                             golden.weights_sha256);
    for (std::size_t i = 0; i < golden.trace.size(); ++i) {
      const auto recorded = golden.recorded.find(i);
      std::cout << fmt::format("{:>4} {}{}\n", i, step_to_json(golden.trace[i]).dump(), recorded == golden.recorded.end() ? "" : recorded_text(recorded->second));
    }
  }
  return kExpected;
}

}  // namespace

ExitCode run_golden(const Arguments& arguments) {
  const std::string word = arguments.empty() ? "" : arguments[0];
  const Arguments rest(arguments.empty() ? arguments.end() : arguments.begin() + 1, arguments.end());
  if (word == "verify") return run_verify(rest);
  if (word == "show") return run_show(rest);
  if (word == "make") return run_golden_make(rest);
  if (word == "diff") return run_golden_diff(rest);
  if (word == "--help" || word == "-h") {
    std::cout << "usage: kvproof golden verify FILE… | show FILE… | make TRACE --out FILE | diff WANT GOT\n";
    return kExpected;
  }
  throw UsageError({"kvproof golden", fmt::format("found \"{}\"", word), "verify, show, make or diff", "Try kvproof golden --help"});
}

}  // namespace kvproof::harness
