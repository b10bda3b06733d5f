#include <fmt/format.h>

#include <iostream>

#include "harness/cli/backend_options.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/judging.hpp"
#include "harness/cli/program.hpp"
#include "harness/cli/trace_on_trial.hpp"

namespace kvproof::harness {
namespace {

namespace po = boost::program_options;

CaseReport replay(const std::string& path, Backend& backend, const OptionValues& values) {
  const TraceOnTrial on_trial(path, backend, values);
  CaseReport report{.name = path, .backend = values["backend"].as<std::string>()};
  report.tolerance = on_trial.tolerance;
  report.replay = fmt::format("{} replay {}{}{}", program(), quoted(path), backend_arguments(values), tolerance_arguments(values));
  report.judgement = judge_file(on_trial.file, path, on_trial.trial);
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
