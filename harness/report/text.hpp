#pragma once
#include <string>

#include "harness/report/case_report.hpp"

namespace kvproof::harness {

/// One line, or for a failure a few: what failed where with both values, and the command that replays it, last.
[[nodiscard]] std::string case_text(const CaseReport& report);

/// `worst 0.26 of the bound (step 3 row 0 column 2 element 17)`
[[nodiscard]] std::string worst_text(const Judgement& judgement);

/// `, rms 1.3e-08, kl 4.1e-16, top-1 8 of 8`; nothing where there is nothing.
[[nodiscard]] std::string spread_text(const Comparison& numbers);

/// `atol 1e-05, rtol 0.0001 (file)`
[[nodiscard]] std::string tolerance_text(const Tolerance& tolerance);

}  // namespace kvproof::harness
