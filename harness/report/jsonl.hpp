#pragma once
#include <string>

#include "harness/report/case_report.hpp"

namespace kvproof::harness {

/// One JSON object on one line (docs/reports.md). A number that is not finite is the string "nan", "inf" or "-inf".
[[nodiscard]] std::string case_jsonl(const CaseReport& report);

}  // namespace kvproof::harness
