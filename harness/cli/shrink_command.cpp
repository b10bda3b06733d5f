#include <fmt/format.h>

#include <iostream>

#include "harness/cli/backend_options.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/program.hpp"
#include "harness/cli/shrinking.hpp"
#include "harness/cli/trace_on_trial.hpp"
#include "harness/report/text.hpp"

namespace kvproof::harness {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

/// `x.trace.json` -> `x.min.trace.json`, beside it.
std::string default_output(std::string path) {
  constexpr std::string_view kSuffix = ".trace.json";
  if (path.ends_with(kSuffix)) path.resize(path.size() - kSuffix.size());
  return path + ".min.trace.json";
}

/// Folders of models are relative to the file that names them.
void move_folders(TraceFile& file, const fs::path& from, const fs::path& to) {
  if (fs::absolute(from).parent_path().lexically_normal() == fs::absolute(to).parent_path().lexically_normal()) return;
  for (auto& [name, model] : file.models)
    if (!model.generated()) model.folder = fs::absolute(from.parent_path() / model.folder).lexically_normal().string();
}

/// What is wrong with the trace; that nothing is, is no verdict.
Judgement failure_of(const TraceOnTrial& on_trial, const std::string& backend) {
  Judgement judgement = judge_file(on_trial.file, on_trial.path, on_trial.trial);
  if (!judgement.passed()) return judgement;
  const std::string why = judgement.not_covered ? "cannot be played on it: " + *judgement.not_covered : "passes on it";
  throw Error({on_trial.path, fmt::format("the trace {} (backend {})", why, backend), "a trace that fails", ""});
}

std::size_t budget_from(const OptionValues& values) {
  const std::int64_t budget = parse_integer(values["budget"].as<std::string>(), "--budget");
  if (budget < 1) throw UsageError({"kvproof shrink", fmt::format("--budget is {}", budget), "1 or more", ""});
  return static_cast<std::size_t>(budget);
}

std::string only_file(const OptionValues& values) {
  const std::size_t files = values.count("file") != 0 ? values["file"].as<std::vector<std::string>>().size() : 0;
  if (files != 1) throw UsageError({"kvproof shrink", fmt::format("{} trace files are named", files), "one", "Try kvproof shrink --help"});
  return values["file"].as<std::vector<std::string>>().front();
}

}  // namespace

ExitCode run_shrink(const Arguments& arguments) {
  OptionTable table("options");
  add_backend_options(table, "engine", "10000");  // each play of a crash is a start
  add_tolerance_options(table);
  table.add_options()("out", po::value<std::string>(), "the smaller file (default: NAME.min.trace.json)")(
      "budget", po::value<std::string>()->default_value(std::to_string(kShrinkBudget)), "how many smaller traces are played at most");
  const auto values = parse_options({"shrink", "file", "FILE.trace.json"}, table, arguments);
  if (!values) return kExpected;
  const std::string path = only_file(*values), out = values->count("out") != 0 ? (*values)["out"].as<std::string>() : default_output(path);
  const std::size_t budget = budget_from(*values);
  const auto backend = backend_from(*values);
  const TraceOnTrial on_trial(path, *backend, *values);
  const Judgement found = failure_of(on_trial, (*values)["backend"].as<std::string>());
  SmallFailure small = smallest_failure(on_trial.file, found, on_trial.trial, budget);
  move_folders(small.file, path, out);
  small.file.run.finding = small.judgement.findings.front().kind;
  small.file.run.code = small.judgement.findings.front().code;
  write_trace_file(out, small.file);

  std::cout << fmt::format("{}: {} of {} steps are left after {} plays{}\n{}", out, small.file.trace.size(), on_trial.file.trace.size(), small.asked,
                           small.minimal ? "; no step, row or token can go" : "; the budget ended, or it does not fail every time",
                           steps_text(small.file.trace));
  CaseReport report{.name = out, .backend = (*values)["backend"].as<std::string>(), .tolerance = on_trial.tolerance};
  report.judgement = std::move(small.judgement);
  report.verdict = CaseVerdict::fail;
  report.replay = fmt::format("{} replay {}{}{}", program(), quoted(out), backend_arguments(*values), tolerance_arguments(*values));
  std::cout << case_text(report);
  return kViolations;
}

}  // namespace kvproof::harness
