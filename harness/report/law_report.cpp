#include "harness/report/law_report.hpp"

namespace kvproof::harness {

std::size_t not_covered_count(const LawReport& law) noexcept {
  std::size_t count = 0;
  for (const auto& [reason, traces] : law.not_covered) count += traces;
  return count;
}

CaseVerdict verdict_of(const LawReport& law) noexcept {
  if (law.failed > law.known_failed || !law.failures.empty()) return CaseVerdict::fail;
  if (law.known_failed != 0) return CaseVerdict::known_failing;
  if (law.traces == 0) return not_covered_count(law) != 0 ? CaseVerdict::not_covered : CaseVerdict::nothing_compared;
  return law.rows + law.checks == 0 ? CaseVerdict::nothing_compared : CaseVerdict::pass;
}

std::string_view family_of(std::string_view law) noexcept { return law.substr(0, law.find('.')); }

}  // namespace kvproof::harness
