#include "harness/report/text.hpp"

#include <fmt/format.h>

#include <cmath>

namespace kvproof::harness {
namespace {

std::string rms_text(const Comparison& numbers) {
  if (numbers.elements == 0) return "";
  return fmt::format(", rms {:.2g}", std::sqrt(numbers.sum_of_squares / static_cast<double>(numbers.elements)));
}

std::string failure_text(const CaseReport& report) {
  const Finding& first = report.judgement.findings.front();
  std::string text = fmt::format("FAIL {}: {} at step {}: {}\n", report.name, finding_name(first.kind), first.step, first.message);
  if (report.judgement.findings.size() > 1) text += fmt::format("     and {} later steps are wrong too\n", report.judgement.findings.size() - 1);
  text += fmt::format("     {} rows compared, {}; {}\n", report.judgement.numbers.rows, worst_text(report.judgement), tolerance_text(report.tolerance));
  return text + fmt::format("     replay: {}\n", report.replay);
}

}  // namespace

std::string tolerance_text(const Tolerance& tolerance) {
  return fmt::format("atol {:g}, rtol {:g}{} ({})", tolerance.atol, tolerance.rtol, tolerance.derived ? ", + 8 x noise" : "", tolerance.source);
}

std::string worst_text(const Judgement& judgement) {
  const auto& place = judgement.numbers.worst_place;
  if (!place) return "no numbers";
  return fmt::format("worst {:.3g} of the bound (step {} row {} column {} element {})", judgement.numbers.worst, judgement.worst_step, place->row,
                     place->column, place->element);
}

std::string case_text(const CaseReport& report) {
  switch (report.verdict) {
    case CaseVerdict::fail:
      return failure_text(report);
    case CaseVerdict::corrupt:
      return fmt::format("CORRUPT {}\n", report.reason);
    case CaseVerdict::not_covered:
      return fmt::format("not covered {}: {}\n", report.name, report.reason.empty() ? report.judgement.not_covered.value_or("") : report.reason);
    case CaseVerdict::nothing_compared:
      return fmt::format("NOTHING COMPARED {}: {} checks, no number\n", report.name, report.judgement.checks);
    case CaseVerdict::pass:
      break;
  }
  return fmt::format("ok   {}: {} rows compared, {}{}\n", report.name, report.judgement.numbers.rows, worst_text(report.judgement),
                     rms_text(report.judgement.numbers));
}

}  // namespace kvproof::harness
