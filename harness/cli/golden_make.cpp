#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "harness/cli/backend_options.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/judging.hpp"
#include "harness/cli/program.hpp"
#include "harness/report/text.hpp"
#include "harness/runner/model_folders.hpp"
#include "harness/trace/golden_file.hpp"

namespace kvproof::harness {
namespace {

namespace po = boost::program_options;

/// A golden on which plain fp32 strays further would make a correct fp32 engine look wrong.
constexpr double kMostNoise = 0.3;

/// The largest noise of one kind of numbers, in units of the bound.
double worst_noise(const std::optional<Tensor>& truth, const std::optional<Tensor>& noise, const std::vector<std::uint8_t>& compared, const Tolerance& tolerance) {
  if (!truth) return 0;
  Tensor in_float = *truth;
  for (std::size_t i = 0; i < in_float.values.size(); ++i) in_float.values[i] += noise->values[i];
  return compare(truth->shape.size() == 4 ? heads_layout(*truth) : logits_layout(*truth), *truth, in_float, compared, nullptr, tolerance).worst;
}

void require_room_for_fp32(const std::vector<Expectation>& expected, const Tolerance& tolerance, const std::string& where) {
  double worst = 0;
  for (const Expectation& each : expected) {
    if (!each.numbers) continue;
    const ExpectedNumbers& numbers = *each.numbers;
    worst = std::max(worst, worst_noise(numbers.logits, numbers.logits_noise, numbers.compared, tolerance));
    worst = std::max(worst, worst_noise(numbers.keys, numbers.keys_noise, numbers.compared, tolerance));
    worst = std::max(worst, worst_noise(numbers.values, numbers.values_noise, numbers.compared, tolerance));
  }
  if (!(worst <= kMostNoise))
    throw DataError({where, fmt::format("plain fp32 reaches {:.3g} of the tolerance on this trace", worst), fmt::format("at most {}", kMostNoise),
                     "Use smaller weights or a wider tolerance."});
}

Recorded recorded_of(const Answer& answer, const Expectation& expected) {
  Recorded recorded{answer.logits, answer.keys, answer.values, {}, answer.ids};
  if (expected.numbers) recorded.compared = expected.numbers->compared;
  return recorded;
}

/// Takes over the answers of a backend that was judged right: a golden is made of right answers only.
void record(GoldenFile& golden, const std::vector<Expectation>& expected, const Observations& seen) {
  for (std::size_t i = 0; i < golden.trace.size(); ++i) {
    if (expected[i].outcome.refusal) golden.trace[i].error = expected[i].outcome.refusal->code;
    const auto* answer = std::get_if<Answer>(&seen[i].reply.value());
    if (answer != nullptr && (expected[i].numbers || answer->ids)) golden.recorded[i] = recorded_of(*answer, expected[i]);
  }
}

GoldenFile without_answers(const TraceFile& file, const Weights& weights, const Tolerance& tolerance, const Capabilities& producer) {
  GoldenFile golden;
  golden.weights_sha256 = weights.sha256();
  golden.config = weights.config_text();
  golden.producer = nlohmann::ordered_json{{"name", "kvproof " + producer.name}, {"version", producer.version},
                                           {"compute", producer.name == "oracle" ? "float64" : "the backend's"}}.dump();
  golden.trace = file.trace;
  golden.atol = tolerance.atol;
  golden.rtol = tolerance.rtol;
  return golden;
}

std::string only_trace(const OptionValues& values) {
  if (values.count("trace") == 1 && values["trace"].as<std::vector<std::string>>().size() == 1) return values["trace"].as<std::vector<std::string>>().front();
  throw UsageError({"kvproof golden make", "not exactly one trace file is named", "TRACE --out FILE", "Try kvproof golden make --help"});
}

Tolerance tolerance_to_record(const OptionValues& values, const RunHeader& run) {
  const Tolerance tolerance = tolerance_from(values, tolerance_of(run));
  if (tolerance.derived) throw UsageError({"kvproof golden make", "a derived tolerance", "--atol and --rtol: a golden records two numbers", ""});
  return tolerance;
}

TraceFile read_trace_of_one_model(const std::string& path) {
  TraceFile file = read_trace_file(path);
  if (file.models.size() != 1 || !file.models.contains("main"))
    throw DataError({path, fmt::format("the header names {} models", file.models.size()), "one, \"main\": a golden is about one model", ""});
  return file;
}

}  // namespace

ExitCode run_golden_make(const Arguments& arguments) {
  OptionTable table("options");
  table.add_options()("out", po::value<std::string>()->required(), "the golden to write")(
      "suite", po::value<std::string>()->default_value("own"), "name of the suite");
  add_backend_options(table, "oracle");
  add_tolerance_options(table);
  const auto values = parse_options({"golden make", "trace", "TRACE --out FILE"}, table, arguments);
  if (!values) return kExpected;
  const std::string path = only_trace(*values), spec = (*values)["backend"].as<std::string>(), out = (*values)["out"].as<std::string>();
  (void)tolerance_from(*values, {});
  const auto backend = backend_from(*values);

  const TraceFile file = read_trace_of_one_model(path);
  CaseReport report{.name = path, .backend = spec, .tolerance = tolerance_to_record(*values, file.run)};
  const ModelFolders models(file.models, std::filesystem::path(path).parent_path());
  const std::filesystem::path& folder = models.folders().at("main");
  const Oracles oracles{{"main", Oracle::open(folder)}};
  (void)outcomes_of(file.trace, facts_of(oracles), path, false);  // names the file if it contradicts the contract
  const auto expected = expect_from_oracle(file.trace, oracles, true);
  require_room_for_fp32(expected, report.tolerance, path);
  report.replay = fmt::format("{} replay {}{}{}", program(), quoted(path), backend_arguments(*values), tolerance_arguments(*values));
  const Observations seen = play_known({file.trace, folder, expected, oracles, {file.run.poison}}, *backend, report);
  if (report.verdict != CaseVerdict::pass) {
    std::cout << "nothing was written: a golden is made of right answers only\n" << case_text(report);
    return code_of(report.verdict);
  }
  GoldenFile golden = without_answers(file, oracles.at("main")->weights(), report.tolerance, backend->capabilities());
  golden.suite = (*values)["suite"].as<std::string>();
  record(golden, expected, seen);
  write_golden(out, golden);
  std::cout << fmt::format("wrote {}: {} steps, {} of them with answers; it needs the model with weights_sha256 {}\n", out, golden.trace.size(), golden.recorded.size(),
                           golden.weights_sha256);
  return kExpected;
}

}  // namespace kvproof::harness
