#pragma once
#include <optional>
#include <string>
#include <vector>

#include "harness/contract/backend.hpp"
#include "harness/history/world.hpp"
#include "harness/trace/step.hpp"

namespace kvproof::harness {

/// Why a backend cannot be asked to play a trace ("op read"), or nothing if it can.
///
/// Such a trace is not played and not covered; it never counts as passed.
[[nodiscard]] std::optional<std::string> not_covered(const Capabilities& capabilities, const Trace& trace, const std::vector<Outcome>& outcomes,
                                                     const RunOptions& options);

}  // namespace kvproof::harness
