#include "harness/cli/check_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "harness/laws/situations.hpp"
#include "harness/report/law_table.hpp"
#include "harness/report/text.hpp"

namespace kvproof::harness {
namespace {

constexpr std::size_t kMostWays = 20;  // of failing that are made small and shown, per law: isolation.refusal has one for each code

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

/// How a failing trace and the ways of failing are introduced.
std::string failures_text(const LawReport& law) {
  const bool one = law.failures.size() + law.ways_left == 1 && law.known.empty();
  std::string text;
  for (const CaseReport& failure : law.failures) {
    const std::string as = one ? "" : " with " + class_text(class_of(failure.judgement.findings.front()));
    text += fmt::format("\n{}: {} of {} traces fail{}; the smallest form of the first:\n{}{}", law.law, failure.traces, law.traces, as, failure.steps, case_text(failure));
  }
  if (law.ways_left != 0) text += fmt::format("\n{}: fails in {} more ways, which are not shown\n", law.law, law.ways_left);
  return text;
}

const KnownFailure* expected_of(const CheckReportOptions& options, const CheckedRun& run, const Law& law, const FailingWay& way) {
  return options.known ? expecting(*options.known, run.engine, law.id, way.one) : nullptr;
}

void add_way(LawReport& report, const FailingWay& way, const KnownFailure* expected, FailureShow& show) {
  if (expected != nullptr) {
    report.known.push_back({way.one, way.cases.size(), expected->reason});
    report.known_failed += way.cases.size();
  } else if (report.failures.size() < kMostWays) {
    report.failures.push_back(show.show(way));
  } else {
    ++report.ways_left;
  }
}

const char* word_of(ExitCode code) { return code == kExpected ? "PASS" : code == kViolations ? "FAIL" : "NO VERDICT"; }

}  // namespace

std::vector<LawReport> law_reports(const CheckRequest& request, const CheckModels& models, const CheckedRun& run, const CheckReportOptions& options) {
  std::vector<LawReport> reports;
  FailureShow show(request, models, options.show);
  for (const Law* law : request.laws) {
    LawReport report{.law = std::string(law->id)};
    std::unordered_set<std::uint64_t> rows;
    for (const CheckedCase& each : run.cases)
      if (each.law == law && each.played) add_case(report, rows, each);
    for (const FailingWay& way : ways_of(*law, run.cases)) add_way(report, way, expected_of(options, run, *law, way), show);
    if (report.traces == 0 && report.not_covered.empty()) report.not_covered["out of time"] = 1;
    report.rows = rows.size();
    reports.push_back(std::move(report));
  }
  return reports;
}

std::vector<LawOutcome> law_outcomes(const CheckRequest& request, const CheckedRun& run) {
  std::vector<LawOutcome> outcomes;
  for (const Law* law : request.laws) {
    LawOutcome outcome{std::string(law->id), 0, 0, {}};
    for (const CheckedCase& each : run.cases) {
      if (each.law != law || !each.played) continue;
      ++outcome.cases;
      if (!each.judgement.not_covered || !each.judgement.passed()) ++outcome.judged;
    }
    for (const FailingWay& way : ways_of(*law, run.cases)) outcome.classes.push_back({way.one, way.cases.size()});
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

std::size_t distinct_rows(const CheckedRun& run) {
  std::unordered_set<std::uint64_t> rows;
  for (const CheckedCase& each : run.cases) rows.insert(each.judgement.row_hashes.begin(), each.judgement.row_hashes.end());
  return rows.size();
}

std::string coverage_text(const CheckRequest& request, const CheckedRun& run) {
  std::array<std::size_t, kSituationCount> total{};
  std::string text;
  for (const Law* law : request.laws) {
    std::array<std::size_t, kSituationCount> counts{};
    for (const CheckedCase& each : run.cases)
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
    if (verdict == CaseVerdict::pass || verdict == CaseVerdict::known_failing) code = kExpected;
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
  ExitCode code = code_of(laws);
  if (options.list) {
    text += known_text(laws) + list_text(*options.list);
    if (!options.list->problems.empty()) code = kViolations;
  }
  text += fmt::format("{} {}: {} law{}, {} traces, {} distinct rows compared, worst {} of the bound; seed {}, {}\n", word_of(code), options.show.backend, laws.size(),
                      laws.size() == 1 ? "" : "s", traces, rows, worst ? fmt::format("{:.3g}", *worst) : "unknown", request.seed, tolerance_text(request.tolerance));
  if (options.list && code == kViolations && !options.written) text += fmt::format("to write the list anew: {}\n", options.list->rewrite);
  return replay.empty() ? text : text + replay + "\n";
}

}  // namespace kvproof::harness
