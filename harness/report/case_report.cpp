#include "harness/report/case_report.hpp"

#include <array>

namespace kvproof::harness {

std::string_view verdict_name(CaseVerdict verdict) noexcept {
  constexpr std::array<std::string_view, 7> kNames = {"pass", "fail", "known_failing", "not_covered", "nothing_compared", "corrupt", "no_verdict"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::string reason_of(const CaseReport& report) {
  if (report.verdict == CaseVerdict::nothing_compared) return "no number to compare";
  return report.reason.empty() && report.verdict == CaseVerdict::not_covered ? report.judgement.not_covered.value_or("") : report.reason;
}

CaseVerdict verdict_of(const Judgement& judgement) noexcept {
  if (!judgement.passed()) return CaseVerdict::fail;
  if (judgement.not_covered) return CaseVerdict::not_covered;
  return judgement.numbers.rows == 0 ? CaseVerdict::nothing_compared : CaseVerdict::pass;
}

}  // namespace kvproof::harness
