#pragma once

namespace kvproof::harness {

/// What the command's exit code says (docs/reports.md).
enum ExitCode : int {
  kExpected = 0,     ///< everything as expected
  kViolations = 1,   ///< a finding
  kNoVerdict = 2,    ///< backend did not start, nothing selected, nothing compared
  kCorrupt = 3,      ///< corrupt or mismatching data
  kUsage = 64,
  kOurFault = 70,
};

/// Of several outcomes the one that counts: 70, then 3, 1, 2, 0.
[[nodiscard]] constexpr ExitCode worse(ExitCode a, ExitCode b) noexcept {
  constexpr auto rank = [](ExitCode code) {
    switch (code) {
      case kExpected: return 0;
      case kNoVerdict: return 1;
      case kViolations: return 2;
      case kCorrupt: return 3;
      case kUsage: return 4;
      case kOurFault: return 5;
    }
    return 5;
  };
  return rank(a) >= rank(b) ? a : b;
}

}  // namespace kvproof::harness
