#include <fmt/format.h>

#include <iostream>

#include "harness/cli/backend_options.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/judging.hpp"
#include "harness/cli/program.hpp"
#include "harness/runner/coverage.hpp"
#include "harness/runner/model_folders.hpp"

namespace kvproof::harness {
namespace {

namespace po = boost::program_options;

CaseReport replay(const std::string& path, Backend& backend, const OptionValues& values) {
  const std::string spec = values["backend"].as<std::string>();
  const TraceFile file = read_trace_file(path);
  const ModelFolders models(file.models, std::filesystem::path(path).parent_path());
  Oracles oracles;
  for (const auto& [name, folder] : models.folders()) oracles[name] = Oracle::open(folder);
  const std::vector<Outcome> outcomes = outcomes_of(file.trace, facts_of(oracles), path, false);

  CaseReport report{.name = path, .backend = spec};
  report.tolerance = tolerance_from(values, tolerance_of(file.run));
  report.replay = fmt::format("{} replay {}{}{}", program(), quoted(path), backend_arguments(values), tolerance_arguments(values));
  const RunOptions options{file.run.poison};
  if (auto missing = not_covered(backend.capabilities(), file.trace, outcomes, options)) {
    report.verdict = CaseVerdict::not_covered;
    report.reason = *missing;
    return report;
  }
  for (const auto& [name, folder] : models.folders()) backend.open(name, folder);
  const auto expected = expect_from_oracle(file.trace, oracles, report.tolerance.derived);
  report.judgement = judge(file.trace, expected, play(backend, file.trace, path, options), backend.capabilities(), report.tolerance, oracles);
  report.verdict = verdict_of(report.judgement);
  return report;
}

}  // namespace

ExitCode run_replay(const Arguments& arguments) {
  OptionTable table("options");
  add_backend_options(table);
  add_tolerance_options(table);
  add_report_option(table);
  const auto values = parse_options({"replay", "file", "FILE.trace.json…"}, table, arguments);
  if (!values) return kExpected;
  if (values->count("file") == 0) throw UsageError({"kvproof replay", "no trace file is named", "at least one", "Try kvproof replay --help"});
  const std::string spec = (*values)["backend"].as<std::string>();
  (void)tolerance_from(*values, {});
  const auto backend = backend_from(*values);  // once: starting it may take long
  Tally tally(spec, wants_jsonl(*values));
  for (const std::string& file : (*values)["file"].as<std::vector<std::string>>())
    tally.add(guarded_case(file, spec, [&] { return replay(file, *backend, *values); }));
  return tally.finish("trace");
}

}  // namespace kvproof::harness
