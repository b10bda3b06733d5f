#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "harness/backends/engine_backend.hpp"

namespace kvproof::harness {

/// Counts how often a fault changed something: where it is 0, the faulty engine is the engine.
using Fired = std::shared_ptr<std::atomic<std::size_t>>;

/// A fault that is known by name.
struct KnownFault {
  std::string_view name;
  std::string_view does;                      ///< what the engine does wrong, in words
  std::vector<std::string_view> laws;         ///< laws that stand for it: each catches it when run alone
  std::function<Fault(const Fired&)> make;
};

/// All faults.
[[nodiscard]] const std::vector<KnownFault>& known_faults();

/// The fault of that name, or null.
[[nodiscard]] const KnownFault* find_fault(std::string_view name);

}  // namespace kvproof::harness
