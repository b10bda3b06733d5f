#pragma once
#include <cstddef>
#include <optional>
#include <set>
#include <string>

namespace kvproof::harness {

/// What a backend says of itself. Traces that need more are not played: they are "not covered", never passed.
struct Capabilities {
  std::string name, version;
  std::set<std::string> kinds;               ///< of caches: dynamic, static, static_sliding_window
  std::set<std::string> ops;                 ///< of the contract
  std::optional<std::size_t> max_batch;      ///< absent: no limit
  bool codes = true;                         ///< refuses with the contract's codes
  bool threads = false;                      ///< plays lanes on threads
  bool exact = false;                        ///< fixed order of every sum
  bool unbounded_window = false;             ///< a sliding cache keeps every column
  bool deterministic = true;
  bool poison = false;                       ///< can fill unused slots with NaN
};

}  // namespace kvproof::harness
