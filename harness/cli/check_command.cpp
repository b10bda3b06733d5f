#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>

#include "engine/safetensors/writer.hpp"
#include "harness/cli/backend_options.hpp"
#include "harness/cli/check_report.hpp"
#include "harness/cli/check_run.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/program.hpp"
#include "harness/report/junit.hpp"
#include "harness/report/known_list.hpp"
#include "harness/report/law_table.hpp"
#include "harness/trace/trace_file.hpp"
#include "harness/verdict/pattern.hpp"

namespace kvproof::harness {
namespace {

namespace po = boost::program_options;

constexpr std::size_t kTraces = 100;         // per law
constexpr std::size_t kTracesPerRound = 10;  // with a time limit
constexpr double kSecondsOnAModel = 100;

std::vector<std::string> words(const OptionValues& values, const char* name) {
  return values.count(name) != 0 ? values[name].as<std::vector<std::string>>() : std::vector<std::string>{};
}

bool any_matches(const std::vector<std::string>& patterns, std::string_view id) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) { return matches_pattern(pattern, id); });
}

/// A pattern that matches no law would silently test nothing.
void require_matches(const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns)
    if (std::ranges::none_of(laws(), [&](const Law& law) { return matches_pattern(pattern, law.id); }))
      throw Error({"kvproof check", fmt::format("\"{}\" matches no law", pattern), "", "See kvproof check --list"});
}

std::vector<const Law*> selected_laws(const OptionValues& values) {
  const auto only = words(values, "only"), skip = words(values, "skip");
  require_matches(only);
  require_matches(skip);
  std::vector<const Law*> selected;
  for (const Law& law : laws())
    if ((only.empty() || any_matches(only, law.id)) && !any_matches(skip, law.id)) selected.push_back(&law);
  if (selected.empty()) throw Error({"kvproof check", "no law is selected", "at least one", "See kvproof check --list"});
  return selected;
}

std::size_t whole(const OptionValues& values, const char* name) {
  const std::int64_t value = parse_integer(values[name].as<std::string>(), std::string("--") + name);
  if (value < 1 || value > 1'000'000) throw UsageError({"kvproof check", fmt::format("--{} is {}", name, value), "1 to 1000000", ""});
  return static_cast<std::size_t>(value);
}

CheckRequest request_from(const OptionValues& values) {
  CheckRequest request;
  request.laws = selected_laws(values);
  request.make_backend = [&values] { return backend_from(values); };
  request.seed = static_cast<std::uint64_t>(parse_integer(values["seed"].as<std::string>(), "--seed"));
  request.tolerance = tolerance_from(values, {});
  request.fail_fast = values.count("fail-fast") != 0;
  request.coverage = values.count("coverage") != 0;
  const bool in_process = !values["backend"].as<std::string>().starts_with("exec:");
  request.jobs = values.count("jobs") != 0 ? whole(values, "jobs") : in_process ? std::max(1U, std::thread::hardware_concurrency()) : 1;
  if (values.count("model") != 0) request.model = values["model"].as<std::string>();
  if (values.count("seconds") != 0) request.seconds = static_cast<double>(whole(values, "seconds"));
  else if (request.model && values.count("traces") == 0) request.seconds = kSecondsOnAModel;
  request.traces = values.count("traces") != 0 ? whole(values, "traces") : request.seconds ? kTracesPerRound : kTraces;
  return request;
}

enum class ReportKind { text, jsonl, junit };

struct ReportChoice {
  ReportKind kind = ReportKind::text;
  std::string file;  ///< of junit=FILE
};

ReportChoice report_from(const OptionValues& values) {
  const auto& word = values["report"].as<std::string>();
  if (word == "text") return {};
  if (word == "jsonl") return {ReportKind::jsonl, ""};
  if (word == "junit") return {ReportKind::junit, ""};
  if (word.starts_with("junit=") && word.size() > 6) return {ReportKind::junit, word.substr(6)};
  throw UsageError({"kvproof check", fmt::format("--report is \"{}\"", word), "text, jsonl, junit or junit=FILE", ""});
}

void write_text(const std::string& file, const std::string& text) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  write_file_atomically(file, std::span(&bytes, 1));
}

/// The list to hold the run against: --known-failing, else what --write-known-failing will write over, if it is there.
std::optional<KnownFailing> list_from(const OptionValues& values) {
  if (values.count("known-failing") != 0) {
    const auto& file = values["known-failing"].as<std::string>();
    return parse_known_failing(read_text_file(file), file, Unwritten::refused);
  }
  if (values.count("write-known-failing") == 0) return std::nullopt;
  const auto& file = values["write-known-failing"].as<std::string>();
  return std::filesystem::exists(file) ? parse_known_failing(read_text_file(file), file, Unwritten::kept) : KnownFailing{};
}

/// This very command, made to write the list it was given, or a new one.
std::string rewrite_command(const Arguments& arguments, const OptionValues& values) {
  std::string text = program() + " check";
  for (const std::string& argument : arguments) text += fmt::format(" {}", quoted(argument));
  if (values.count("write-known-failing") != 0) return text;
  return fmt::format("{} --write-known-failing {}", text, quoted(values["known-failing"].as<std::string>()));
}

ListReport list_report(const CheckReportOptions& options, const std::vector<LawOutcome>& outcomes, const Arguments& arguments, const OptionValues& values) {
  ListReport report = report_of(*options.known, options.engine, outcomes);
  report.file = values[values.count("known-failing") != 0 ? "known-failing" : "write-known-failing"].as<std::string>();
  report.rewrite = rewrite_command(arguments, values);
  return report;
}

void write_report(const ReportChoice& choice, const CheckRequest& request, const std::vector<LawReport>& laws, std::size_t rows, const CheckReportOptions& options) {
  const CheckRun run{.seed = request.seed, .backend = options.show.backend, .engine = options.engine, .tolerance = request.tolerance};
  const ListReport* list = options.list ? &*options.list : nullptr;
  if (choice.kind == ReportKind::jsonl) {
    for (const LawReport& law : laws) std::cout << law_jsonl(run, law);
    if (list != nullptr) std::cout << list_jsonl(*list);
  }
  if (choice.kind == ReportKind::junit && choice.file.empty()) std::cout << junit_xml(run, laws, list);
  if (choice.kind == ReportKind::junit && !choice.file.empty()) write_text(choice.file, junit_xml(run, laws, list));
  if (choice.kind == ReportKind::text || !choice.file.empty()) std::cout << check_text(request, laws, rows, options);
}

/// Most memory this process held so far, in GB.
double peak_gigabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1e6;  // from kilobytes
}

/// On a real checkpoint time and memory are of interest; beside the report, which is the same bytes every time.
CheckedRun run_and_say_what_it_took(const CheckRequest& request, const CheckModels& models) {
  const auto start = std::chrono::steady_clock::now();
  CheckedRun run = run_check(request, models);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::cerr << fmt::format("kvproof check: {} took {:.0f} s and at most {:.1f} GB of memory\n", request.model->string(), took.count(), peak_gigabytes());
  return run;
}

}  // namespace

ExitCode run_check(const Arguments& arguments) {
  OptionTable table("options");
  add_backend_options(table);
  table.add_options()("model", po::value<std::string>(), "judge on this model folder instead of the probe models")(
      "only", po::value<std::vector<std::string>>(), "laws to check, with *; several times for more")("skip", po::value<std::vector<std::string>>(), "laws to leave out, with *")(
      "seed", po::value<std::string>()->default_value("1"), "seed of all cases")("traces", po::value<std::string>(), "cases per law (default: 100)")(
      "seconds", po::value<std::string>(), "as many cases as fit, instead (default with --model: 100)")(
      "jobs,j", po::value<std::string>(), "workers (default: the processors; 1 for exec:)")("list", "name the laws and stop")(
      "coverage", "say how often each situation occurred")("fail-fast", "stop at the first failure")(
      "failures", po::value<std::string>()->default_value("kvproof-failures"), "folder for failing traces")(
      "known-failing", po::value<std::string>(), "list of failures that are expected: they are no violations, and their absence is one")(
      "write-known-failing", po::value<std::string>(), "write the list as this run would have it, with reasons to be written by hand")(
      "report", po::value<std::string>()->default_value("text"), "text, jsonl, junit, or junit=FILE beside the text");
  add_tolerance_options(table);
  const auto values = parse_options({"check", "", "[--backend SPEC]"}, table, arguments);
  if (!values) return kExpected;
  if (values->count("list") != 0) {
    for (const Law& law : laws()) std::cout << fmt::format("{:<24} {}\n", law.id, law.statement);
    return kExpected;
  }
  const ReportChoice choice = report_from(*values);
  const CheckRequest request = request_from(*values);
  CheckReportOptions options{.show = {(*values)["backend"].as<std::string>(), backend_arguments(*values) + tolerance_arguments(*values), (*values)["failures"].as<std::string>()}};
  options.known = list_from(*values);
  options.written = values->count("write-known-failing") != 0;
  const CheckModels models(request);
  const CheckedRun run = request.model ? run_and_say_what_it_took(request, models) : run_check(request, models);
  options.engine = run.engine;
  const std::vector<LawOutcome> outcomes = law_outcomes(request, run);
  if (options.known) options.list = list_report(options, outcomes, arguments, *values);
  const std::vector<LawReport> reports = law_reports(request, models, run, options);
  if (request.coverage) std::cout << coverage_text(request, run);
  write_report(choice, request, reports, distinct_rows(run), options);
  if (options.written) write_text((*values)["write-known-failing"].as<std::string>(), format_known_failing(rewritten(*options.known, run.engine, outcomes)));
  const bool stale = options.list && !options.list->problems.empty();
  return worse(code_of(reports), stale ? kViolations : kExpected);
}

}  // namespace kvproof::harness
