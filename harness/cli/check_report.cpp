#include "harness/cli/check_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "harness/cli/options.hpp"
#include "harness/cli/program.hpp"
#include "harness/cli/shrinking.hpp"
#include "harness/laws/situations.hpp"
#include "harness/report/law_table.hpp"
#include "harness/report/text.hpp"
#include "harness/trace/step_json.hpp"
#include "harness/verdict/shrink_case.hpp"

namespace kvproof::harness {
namespace {

void add_case(LawReport& report, std::unordered_set<std::uint64_t>& rows, const CheckedCase& each) {
  report.seconds += each.seconds;
  if (each.judgement.not_covered && each.judgement.passed()) {
    ++report.not_covered[*each.judgement.not_covered];
    return;
  }
  ++report.traces;
  report.checks += each.judgement.checks;
  if (!each.judgement.passed()) ++report.failed;
  if (each.judgement.numbers.worst_place) report.worst = std::max(report.worst.value_or(0), each.judgement.numbers.worst);
  rows.insert(each.judgement.row_hashes.begin(), each.judgement.row_hashes.end());
}

RunHeader header_of(const CheckRequest& request, const CheckedCase& each) {
  RunHeader run;
  run.poison = each.made.options.poison;
  run.law = std::string(each.law->id);
  if (request.tolerance.source == "command line") {
    run.atol = request.tolerance.atol;
    run.rtol = request.tolerance.rtol;
    run.derived_tolerance = request.tolerance.derived;
  }
  return run;
}

/// The failing case in its smallest form, as a report and as a file to replay.
CaseReport shown_failure(const CheckRequest& request, const CheckModels& models, const CheckedCase& each, const CheckReportOptions& options) {
  const auto backend = request.make_backend();
  for (const auto& [name, model] : each.models) backend->open(name, models.folder(model));
  const TraceFile found{models.sources(each.models), header_of(request, each), each.made.trace};
  const Oracles oracles = models.oracles(each.models);
  const SmallFailure small = smallest_failure(found, each.judgement, {each.law->judgement, *backend, oracles, request.tolerance});

  std::filesystem::create_directories(options.failures);
  const std::filesystem::path path = options.failures / fmt::format("{}-{}-{}.trace.json", each.law->id, request.seed, each.index);
  write_trace_file(path, small.file);
  CaseReport report{.name = fmt::format("{}/{}", each.law->id, each.index), .backend = options.backend, .tolerance = request.tolerance};
  report.judgement = small.judgement;
  report.verdict = CaseVerdict::fail;
  report.replay = fmt::format("{} replay {}{}", program(), quoted(path.string()), options.replay_arguments);
  report.reason = steps_text(small.file.trace);
  return report;
}

std::string failures_text(const LawReport& law) {
  std::string text;
  for (const CaseReport& failure : law.failures)
    text += fmt::format("\n{}: {} of {} traces fail; the smallest form of the first:\n{}{}", law.law, law.failed, law.traces, failure.reason, case_text(failure));
  return text;
}

const char* word_of(ExitCode code) { return code == kExpected ? "PASS" : code == kViolations ? "FAIL" : "NO VERDICT"; }

}  // namespace

std::vector<LawReport> law_reports(const CheckRequest& request, const CheckModels& models, const std::vector<CheckedCase>& cases,
                                   const CheckReportOptions& options) {
  std::vector<LawReport> reports;
  for (const Law* law : request.laws) {
    LawReport report{.law = std::string(law->id)};
    std::unordered_set<std::uint64_t> rows;
    for (const CheckedCase& each : cases) {
      if (each.law != law || !each.played) continue;
      add_case(report, rows, each);
      if (!each.judgement.passed() && report.failures.empty()) report.failures.push_back(shown_failure(request, models, each, options));
    }
    if (report.traces == 0 && report.not_covered.empty()) report.not_covered["out of time"] = 1;
    report.rows = rows.size();
    reports.push_back(std::move(report));
  }
  return reports;
}

std::size_t distinct_rows(const std::vector<CheckedCase>& cases) {
  std::unordered_set<std::uint64_t> rows;
  for (const CheckedCase& each : cases) rows.insert(each.judgement.row_hashes.begin(), each.judgement.row_hashes.end());
  return rows.size();
}

std::string coverage_text(const CheckRequest& request, const std::vector<CheckedCase>& cases) {
  std::array<std::size_t, kSituationCount> total{};
  std::string text;
  for (const Law* law : request.laws) {
    std::array<std::size_t, kSituationCount> counts{};
    for (const CheckedCase& each : cases)
      for (std::size_t s = 0; each.law == law && each.played && s < kSituationCount; ++s) counts[s] += each.situations[s] ? 1 : 0;
    text += fmt::format("{}:", law->id);
    for (std::size_t s = 0; s < kSituationCount; ++s) {
      total[s] += counts[s];
      if (counts[s] != 0) text += fmt::format(" {} {}", situation_name(static_cast<Situation>(s)), counts[s]);
    }
    text += "\n";
  }
  std::size_t reached = 0;
  std::string missed;
  for (std::size_t s = 0; s < kSituationCount; ++s) {
    reached += total[s] != 0 ? 1 : 0;
    if (total[s] == 0) missed += fmt::format("never: {} ({})\n", situation_name(static_cast<Situation>(s)), situation_words(static_cast<Situation>(s)));
  }
  return text + missed + fmt::format("{} of {} situations reached\n", reached, kSituationCount);
}

ExitCode code_of(const std::vector<LawReport>& laws) {
  ExitCode code = kNoVerdict;
  for (const LawReport& law : laws) {
    const CaseVerdict verdict = verdict_of(law);
    if (verdict == CaseVerdict::fail) return kViolations;
    if (verdict == CaseVerdict::pass) code = kExpected;
  }
  return code;
}

std::string check_text(const CheckRequest& request, const std::vector<LawReport>& laws, std::size_t rows, const CheckReportOptions& options) {
  std::string text = law_table_text(laws), replay;
  std::size_t traces = 0;
  std::optional<double> worst;
  for (const LawReport& law : laws) {
    traces += law.traces;
    if (law.worst) worst = std::max(worst.value_or(0), *law.worst);
    text += failures_text(law);
    if (replay.empty() && !law.failures.empty()) replay = law.failures.front().replay;
  }
  text += fmt::format("{} {}: {} law{}, {} traces, {} distinct rows compared, worst {} of the bound; seed {}, {}\n", word_of(code_of(laws)), options.backend, laws.size(),
                      laws.size() == 1 ? "" : "s", traces, rows, worst ? fmt::format("{:.3g}", *worst) : "unknown", request.seed, tolerance_text(request.tolerance));
  return replay.empty() ? text : text + replay + "\n";
}

}  // namespace kvproof::harness
