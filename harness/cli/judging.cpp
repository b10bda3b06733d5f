#include "harness/cli/judging.hpp"

#include <fmt/format.h>

#include <iostream>

#include "engine/base/error.hpp"
#include "harness/backends/backend_spec.hpp"
#include "harness/report/jsonl.hpp"
#include "harness/report/text.hpp"

namespace kvproof::harness {
namespace {

ExitCode code_of(CaseVerdict verdict) {
  switch (verdict) {
    case CaseVerdict::pass: return kExpected;
    case CaseVerdict::fail: return kViolations;
    case CaseVerdict::not_covered:
    case CaseVerdict::nothing_compared: return kNoVerdict;
    case CaseVerdict::corrupt: return kCorrupt;
  }
  return kOurFault;
}

const char* word_of(ExitCode code) {
  switch (code) {
    case kExpected: return "PASS";
    case kViolations: return "FAIL";
    case kCorrupt: return "CORRUPT";
    default: return "NO VERDICT";
  }
}

}  // namespace

CaseReport guarded_case(const std::string& name, const std::string& backend, const std::function<CaseReport()>& run) {
  CaseReport report{.name = name, .backend = backend};
  try {
    return run();
  } catch (const DataError& error) {
    report.verdict = CaseVerdict::corrupt;
    report.reason = error.what();
  } catch (const NoBackend& error) {
    report.verdict = CaseVerdict::not_covered;
    report.reason = error.what();
  }
  return report;
}

void Tally::add(const CaseReport& report) {
  std::cout << (jsonl_ ? case_jsonl(report) : case_text(report)) << std::flush;
  code_ = worse(code_, code_of(report.verdict));
  ++cases_;
  if (report.verdict != CaseVerdict::pass) ++failed_;
  rows_ += report.judgement.numbers.rows;
  if (report.judgement.numbers.worst < worst_ && !worst_where_.empty()) return;
  if (!report.judgement.numbers.worst_place) return;
  worst_ = report.judgement.numbers.worst;
  worst_where_ = fmt::format("{} in {}", worst_text(report.judgement), report.name);
}

ExitCode Tally::finish(const char* noun) const {
  const ExitCode code = cases_ == 0 || rows_ == 0 ? worse(code_, kNoVerdict) : code_;
  if (jsonl_) return code;
  std::cout << fmt::format("{} {}: {} {}{}, {} rows compared, {}\n", word_of(code), backend_, cases_, noun,
                           failed_ != 0 ? fmt::format(" ({} not passed)", failed_) : "", rows_, worst_where_.empty() ? "no numbers" : worst_where_);
  return code;
}

}  // namespace kvproof::harness
