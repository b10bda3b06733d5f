#include "harness/report/text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>

namespace kvproof::harness {
namespace {

std::string later_steps_text(const std::vector<Finding>& findings) {
  std::set<std::size_t> later;
  for (const Finding& finding : findings) later.insert(finding.step);
  later.erase(findings.front().step);
  if (later.empty()) return "";
  return later.size() == 1 ? "     and 1 later step is wrong too\n" : fmt::format("     and {} later steps are wrong too\n", later.size());
}

std::string numbers_text(const CaseReport& report) {
  return fmt::format("{} rows compared, {}{}; {}", report.judgement.numbers.rows, worst_text(report.judgement), spread_text(report.judgement.numbers),
                     tolerance_text(report.tolerance));
}

std::string failure_text(const CaseReport& report) {
  const Finding& first = report.judgement.findings.front();
  return fmt::format("FAIL {}: {} at step {}: {}\n{}     {}\n     replay: {}\n", report.name, finding_name(first.kind), first.step, first.message,
                     later_steps_text(report.judgement.findings), numbers_text(report), report.replay);
}

}  // namespace

std::string tolerance_text(const Tolerance& tolerance) {
  return fmt::format("atol {:g}, rtol {:g}{} ({})", tolerance.atol, tolerance.rtol, tolerance.derived ? ", + 8 x noise" : "", tolerance.source);
}

std::string worst_text(const Judgement& judgement) {
  const auto& place = judgement.numbers.worst_place;
  if (!place) return judgement.numbers.rows == 0 ? "no numbers" : "ids only";
  return fmt::format("worst {:.3g} of the bound (step {} row {} column {} element {})", judgement.numbers.worst, judgement.worst_step, place->row,
                     place->column, place->element);
}

std::string spread_text(const Comparison& numbers) {
  std::string text;
  if (numbers.elements != 0) text += fmt::format(", rms {:.2g}", std::sqrt(numbers.sum_of_squares / static_cast<double>(numbers.elements)));
  if (numbers.top1_rows == 0) return text;
  text += fmt::format(", kl {:.2g}, top-1 {} of {}", numbers.worst_kl, numbers.top1_agree, numbers.top1_rows);
  if (numbers.top1_undecidable != 0) text += fmt::format(" ({} undecidable)", numbers.top1_undecidable);
  return text;
}

std::string case_text(const CaseReport& report) {
  switch (report.verdict) {
    case CaseVerdict::fail:
    case CaseVerdict::known_failing:
      return failure_text(report);
    case CaseVerdict::corrupt:
      return fmt::format("CORRUPT {}\n", report.reason);
    case CaseVerdict::no_verdict:
      return fmt::format("NO VERDICT {}\n", report.reason);
    case CaseVerdict::not_covered:
      return fmt::format("not covered {}: {}\n", report.name, reason_of(report));
    case CaseVerdict::nothing_compared:
      return fmt::format("NOTHING COMPARED {}: {} checks, no number\n", report.name, report.judgement.checks);
    case CaseVerdict::pass:
      break;
  }
  return fmt::format("ok   {}: {}\n", report.name, numbers_text(report));
}

}  // namespace kvproof::harness
