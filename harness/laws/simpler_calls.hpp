#pragma once
#include <vector>

#include "harness/trace/step.hpp"

namespace kvproof::harness {

/// Calls that say the same with less, or ask less of a backend: no mask, default positions, a simpler kind, a smaller capacity.
/// The boldest first. None is equal to `call`, and no chain of such steps comes back to it.
[[nodiscard]] std::vector<Call> simpler_calls(const Call& call);

}  // namespace kvproof::harness
