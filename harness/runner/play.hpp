#pragma once
#include <optional>
#include <string>
#include <vector>

#include "harness/contract/backend.hpp"
#include "harness/trace/step.hpp"

namespace kvproof::harness {

/// What a backend answered to each step; nothing from the step on at which it broke down.
using Observations = std::vector<std::optional<Reply>>;

/// Plays a trace from an empty backend: begin(), then every step. Lanes run side by side, the k-th steps of all lanes starting
/// together; a finished lane leaves the barrier.
///
/// Errors    none of the backend's: one that throws from a call is the observation `backend_threw`. begin() may throw Error.
[[nodiscard]] Observations play(Backend& backend, const Trace& trace, const std::string& name, const RunOptions& options);

}  // namespace kvproof::harness
