#include "harness/cli/judging.hpp"

#include <fmt/format.h>

#include <iostream>

#include "engine/base/error.hpp"
#include "harness/cli/options.hpp"
#include "harness/report/jsonl.hpp"
#include "harness/report/text.hpp"
#include "harness/runner/coverage.hpp"
#include "harness/verdict/judge.hpp"

namespace kvproof::harness {
namespace {

const char* word_of(ExitCode code) {
  switch (code) {
    case kExpected: return "PASS";
    case kViolations: return "FAIL";
    case kCorrupt: return "CORRUPT";
    default: return "NO VERDICT";
  }
}

CaseReport without_verdict(const std::string& name, const std::string& backend, CaseVerdict verdict, const std::exception& error) {
  CaseReport report{.name = name, .backend = backend};
  report.verdict = verdict;
  report.reason = error.what();
  return report;
}

}  // namespace

ExitCode code_of(CaseVerdict verdict) noexcept {
  switch (verdict) {
    case CaseVerdict::pass:
    case CaseVerdict::known_failing: return kExpected;
    case CaseVerdict::fail: return kViolations;
    case CaseVerdict::not_covered:
    case CaseVerdict::nothing_compared:
    case CaseVerdict::no_verdict: return kNoVerdict;
    case CaseVerdict::corrupt: return kCorrupt;
  }
  return kOurFault;
}

Tolerance tolerance_of(const RunHeader& run) {
  Tolerance tolerance;
  if (run.atol || run.rtol || run.derived_tolerance) tolerance.source = "file";
  tolerance.atol = run.atol.value_or(tolerance.atol);
  tolerance.rtol = run.rtol.value_or(tolerance.rtol);
  tolerance.derived = run.derived_tolerance;
  return tolerance;
}

Observations play_known(const KnownTrace& known, Backend& backend, CaseReport& report) {
  const Capabilities& capabilities = backend.capabilities();
  if (auto missing = not_covered(capabilities, known.trace, outcomes_of(known.expected), known.options)) {
    report.verdict = CaseVerdict::not_covered;
    report.reason = *missing;
    return {};
  }
  backend.open("main", known.folder);
  Observations seen = play(backend, known.trace, report.name, known.options);
  report.judgement = judge(known.trace, known.expected, seen, {capabilities, report.tolerance, known.oracles});
  report.verdict = verdict_of(report.judgement);
  return seen;
}

CaseReport guarded_case(const std::string& name, const std::string& backend, const std::function<CaseReport()>& run) {
  try {
    return run();
  } catch (const UsageError&) {
    throw;  // the command line is wrong for every case
  } catch (const DataError& error) {
    return without_verdict(name, backend, CaseVerdict::corrupt, error);
  } catch (const Error& error) {
    return without_verdict(name, backend, CaseVerdict::no_verdict, error);
  }
}

void Tally::add(const CaseReport& report) {
  std::cout << (jsonl_ ? case_jsonl(report) : case_text(report)) << std::flush;
  code_ = worse(code_, code_of(report.verdict));
  ++cases_;
  if (report.verdict != CaseVerdict::pass) ++failed_;
  if (report.verdict == CaseVerdict::fail && first_replay_.empty()) first_replay_ = report.replay;
  const Comparison& numbers = report.judgement.numbers;
  rows_ += numbers.rows;
  if (!numbers.worst_place || (numbers.worst <= worst_ && !worst_where_.empty())) return;
  worst_ = numbers.worst;
  worst_where_ = fmt::format("{} in {}", worst_text(report.judgement), report.name);
}

ExitCode Tally::finish(const char* noun) const {
  const ExitCode code = cases_ == 0 || rows_ == 0 ? worse(code_, kNoVerdict) : code_;
  if (jsonl_) return code;
  std::cout << fmt::format("{} {}: {} {}{}{}, {} rows compared, {}\n", word_of(code), backend_, cases_, noun, cases_ == 1 ? "" : "s",
                           failed_ != 0 ? fmt::format(" ({} not passed)", failed_) : "", rows_, worst_where_.empty() ? "no numbers" : worst_where_);
  if (!first_replay_.empty()) std::cout << first_replay_ << '\n';
  return code;
}

}  // namespace kvproof::harness
