#pragma once
#include <optional>
#include <string>
#include <vector>

#include "harness/contract/backend.hpp"
#include "harness/trace/step.hpp"

namespace kvproof::harness {

/// What happened at one step.
struct Observation {
  std::optional<Reply> reply;   ///< nothing if the backend had broken down before
  bool arrays_changed = false;  ///< the caller's arrays are not as they were (in-process doors)
};
using Observations = std::vector<Observation>;

/// Plays a trace from an empty backend: begin(), then every step. Lanes run side by side, the k-th steps of all lanes starting
/// together; a finished lane leaves the barrier.
///
/// Errors    none of the backend's: one that throws from a call is the observation `backend_threw`. begin() may throw Error.
[[nodiscard]] Observations play(Backend& backend, const Trace& trace, const std::string& name, const RunOptions& options);

}  // namespace kvproof::harness
