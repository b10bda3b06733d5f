#include <fmt/format.h>

#include <iostream>

#include "harness/cli/backend_options.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/judging.hpp"
#include "harness/cli/program.hpp"
#include "harness/cli/shrinking.hpp"
#include "harness/runner/model_folders.hpp"
#include "harness/verdict/judge_case.hpp"

namespace kvproof::harness {
namespace {

namespace po = boost::program_options;

CaseReport replay(const std::string& path, Backend& backend, const OptionValues& values) {
  const std::string spec = values["backend"].as<std::string>();
  const TraceFile file = read_trace_file(path);
  const ModelFolders models(file.models, std::filesystem::path(path).parent_path());
  Oracles oracles;
  for (const auto& [name, folder] : models.folders()) oracles[name] = Oracle::open(folder);

  CaseReport report{.name = path, .backend = spec};
  report.tolerance = tolerance_from(values, tolerance_of(file.run));
  report.replay = fmt::format("{} replay {}{}{}", program(), quoted(path), backend_arguments(values), tolerance_arguments(values));
  for (const auto& [name, folder] : models.folders()) backend.open(name, folder);
  report.judgement = judge_case({path, file.trace, {file.run.poison}, judgement_of(file, path)}, backend, oracles, report.tolerance);
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
