#pragma once
#include "harness/defects/catalogue.hpp"

namespace kvproof::harness {

/// A fault between every call of a lane and the engine, with a memory of its own for each lane: what a fault of one cache remembers
/// is no other lane's business, whose thread may run beside.
template <typename Memory, typename Act>
Fault remembering(const Act& act) {
  Fault fault;
  fault.lane = [act](std::size_t) -> LaneFault {
    return [act, memory = Memory{}](EngineLane& lane, const Call& call) mutable -> Reply { return act(memory, lane, call); };
  };
  return fault;
}

struct Nothing {};

/// A fault that stands between a call of type C and the engine, and remembers nothing; other calls are passed on.
template <typename C, typename Act>
Fault on(const Act& act) {
  return remembering<Nothing>([act](Nothing&, EngineLane& lane, const Call& call) -> Reply {
    const auto* meant = std::get_if<C>(&call);
    return meant != nullptr ? act(lane, *meant) : lane.call(call);
  });
}

[[nodiscard]] std::vector<KnownFault> plan_faults();     ///< wrong indices: positions, what is seen, what is read
[[nodiscard]] std::vector<KnownFault> call_faults();     ///< an op that does something else, or a reply that says something else
[[nodiscard]] std::vector<KnownFault> storage_faults();  ///< keys and values that other caches write

}  // namespace kvproof::harness
