#include <fmt/format.h>

#include <iostream>

#include "harness/cli/backend_options.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/judging.hpp"
#include "harness/cli/program.hpp"
#include "harness/cli/trace_on_trial.hpp"
#include "harness/report/emit_transformers.hpp"

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

ExitCode emit(const OptionValues& values) {
  const auto& format = values["emit"].as<std::string>();
  const auto& files = values["file"].as<std::vector<std::string>>();
  if (format != "transformers") throw UsageError({"kvproof replay", fmt::format("--emit is \"{}\"", format), "transformers", ""});
  if (files.size() != 1) throw UsageError({"kvproof replay", fmt::format("{} trace files are named", files.size()), "one to emit", ""});
  const std::filesystem::path path = files.front();
  TraceFile file = read_trace_file(path);
  const ModelFolders folders(file.models, path.parent_path());
  const Oracles oracles = open_oracles(folders);
  for (auto& [name, model] : file.models)
    if (!model.generated()) model.folder = (path.parent_path() / model.folder).lexically_normal().string();
  std::cout << transformers_script({file, path.filename().string(), facts_of(oracles), tolerance_from(values, tolerance_of(file.run))});
  return kExpected;
}

}  // namespace

ExitCode run_replay(const Arguments& arguments) {
  OptionTable table("options");
  add_backend_options(table);
  add_tolerance_options(table);
  add_report_option(table);
  table.add_options()("emit", po::value<std::string>(), "transformers: write a Python script that shows the finding without kvproof, and play nothing");
  const auto values = parse_options({"replay", "file", "FILE.trace.json…"}, table, arguments);
  if (!values) return kExpected;
  if (values->count("file") == 0) throw UsageError({"kvproof replay", "no trace file is named", "at least one", "Try kvproof replay --help"});
  if (values->count("emit") != 0) return emit(*values);
  const std::string spec = (*values)["backend"].as<std::string>();
  (void)tolerance_from(*values, {});
  const auto backend = backend_from(*values);  // once: starting it may take long
  Tally tally(spec, wants_jsonl(*values));
  for (const std::string& file : (*values)["file"].as<std::vector<std::string>>())
    tally.add(guarded_case(file, spec, [&] { return replay(file, *backend, *values); }));
  return tally.finish("trace");
}

}  // namespace kvproof::harness
