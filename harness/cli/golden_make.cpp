#include <fmt/format.h>

#include <iostream>

#include "harness/backends/backend_spec.hpp"
#include "harness/cli/commands.hpp"
#include "harness/report/text.hpp"
#include "harness/runner/model_folders.hpp"
#include "harness/trace/golden_file.hpp"

namespace kvproof::harness {
namespace {

namespace po = boost::program_options;

/// A golden on which plain fp32 strays this far would make a correct fp32 engine look wrong.
constexpr double kMostNoise = 0.3;

void require_room_for_fp32(const std::vector<Expectation>& expected, const Tolerance& tolerance, const std::string& where) {
  double worst = 0;
  const auto look = [&](const std::optional<Tensor>& truth, const std::optional<Tensor>& noise) {
    for (std::size_t i = 0; truth && i < truth->values.size(); ++i) worst = std::max(worst, noise->values[i] / tolerance.bound(truth->values[i], 0));
  };
  for (const Expectation& each : expected) {
    if (!each.numbers) continue;
    look(each.numbers->logits, each.numbers->logits_noise);
    look(each.numbers->keys, each.numbers->keys_noise);
    look(each.numbers->values, each.numbers->values_noise);
  }
  if (!(worst <= kMostNoise))
    throw DataError({where, fmt::format("plain fp32 reaches {:.3g} of the tolerance on this trace", worst), fmt::format("at most {}", kMostNoise),
                     "Use smaller weights or a wider tolerance."});
}

Recorded recorded_of(const Answer& answer, const Expectation& expected) {
  Recorded recorded;
  recorded.logits = answer.logits;
  recorded.keys = answer.keys;
  recorded.values = answer.values;
  recorded.ids = answer.ids;
  if (expected.numbers) recorded.compared = expected.numbers->compared;
  return recorded;
}

/// Takes the answers over. A golden is made of right answers only: whoever makes it is judged first.
void record(GoldenFile& golden, const std::vector<Expectation>& expected, const Observations& seen) {
  for (std::size_t i = 0; i < golden.trace.size(); ++i) {
    Step& step = golden.trace[i];
    if (expected[i].outcome.refusal) step.error = expected[i].outcome.refusal->code;
    const auto* answer = std::get_if<Answer>(&*seen[i]);
    if (answer != nullptr && (expected[i].numbers || answer->ids)) golden.recorded[i] = recorded_of(*answer, expected[i]);
  }
}

}  // namespace

ExitCode run_golden_make(const Arguments& arguments) {
  OptionTable table("options");
  table.add_options()("out", po::value<std::string>()->required(), "the golden to write")(
      "backend", po::value<std::string>()->default_value("oracle"), "who answers")("suite", po::value<std::string>()->default_value("own"), "name of the suite");
  add_tolerance_options(table);
  const auto values = parse_options({"golden make", "trace", "TRACE --out FILE"}, table, arguments);
  if (!values) return kExpected;
  if (values->count("trace") != 1 || (*values)["trace"].as<std::vector<std::string>>().size() != 1)
    throw UsageError({"kvproof golden make", "not exactly one trace file is named", "TRACE --out FILE", ""});
  const std::string path = (*values)["trace"].as<std::vector<std::string>>().front(), spec = (*values)["backend"].as<std::string>();

  const TraceFile file = read_trace_file(path);
  if (file.models.size() != 1 || !file.models.contains("main"))
    throw DataError({path, fmt::format("the header names {} models", file.models.size()), "one, \"main\": a golden is about one model", ""});
  const ModelFolders models(file.models, std::filesystem::path(path).parent_path());
  const std::filesystem::path& folder = models.folders().at("main");
  const Oracles oracles{{"main", Oracle::open(folder)}};
  const auto expected = expect_from_oracle(file.trace, oracles, true);
  const auto backend = make_backend(spec);
  backend->open("main", folder);

  GoldenFile golden;
  golden.where = (*values)["out"].as<std::string>();
  golden.suite = (*values)["suite"].as<std::string>();
  golden.weights_sha256 = oracles.at("main")->weights().sha256();
  golden.config = oracles.at("main")->weights().config_text();
  golden.producer = fmt::format(R"({{"name": "kvproof {}", "version": "{}", "compute": "{}"}})", backend->capabilities().name, backend->capabilities().version,
                                spec == "oracle" ? "float64" : "the backend's");
  golden.trace = file.trace;
  const Tolerance tolerance = tolerance_from(*values, {});
  golden.atol = tolerance.atol;
  golden.rtol = tolerance.rtol;
  require_room_for_fp32(expected, tolerance, path);
  const Observations seen = play(*backend, file.trace, path, {file.run.poison});
  CaseReport report{.name = path, .backend = spec, .tolerance = tolerance};
  report.judgement = judge(file.trace, expected, seen, backend->capabilities(), tolerance, oracles);
  report.verdict = verdict_of(report.judgement);
  report.replay = fmt::format("kvproof replay {} --backend {}", quoted(path), quoted(spec));
  if (report.verdict != CaseVerdict::pass) {
    std::cout << case_text(report) << "nothing was written\n";
    return report.verdict == CaseVerdict::fail ? kViolations : kNoVerdict;
  }
  record(golden, expected, seen);
  write_golden(golden.where, golden);
  std::cout << fmt::format("wrote {}: {} steps, {} of them with answers; it needs the model {}\n", golden.where, golden.trace.size(), golden.recorded.size(),
                           golden.weights_sha256.substr(0, 12));
  return kExpected;
}

}  // namespace kvproof::harness
