#pragma once
#include <cmath>
#include <string>

namespace kvproof::harness {

/// How close an answer must come: |got - want| <= atol + rtol * |want| (+ 8 * noise), computed in double.
///
/// noise = |the oracle's loops in float - in double| on the same history: an engine that is wrong cannot widen its own bound.
struct Tolerance {
  double atol = 1e-5;
  double rtol = 1e-4;
  bool derived = false;
  std::string source = "default";  ///< default, file or command line; the report says which

  [[nodiscard]] double bound(double want, double noise) const noexcept { return atol + rtol * std::abs(want) + (derived ? 8 * noise : 0); }
};

}  // namespace kvproof::harness
