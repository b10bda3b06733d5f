#pragma once
#include <functional>
#include <memory>

#include "harness/backends/engine_lane.hpp"
#include "harness/contract/backend.hpp"

namespace kvproof::harness {

/// Stands between the calls of one lane and the engine: it may pass a call on, change it, or answer in the lane's place.
using LaneFault = std::function<Reply(EngineLane&, const Call&)>;

/// How an engine is made wrong on purpose: it changes a plan before it runs, or stands between calls and the engine. Either may be
/// empty. It lives for one case, so that what it remembers belongs to that case; what `lane` makes lives for one lane of it.
///
/// Threads   `lane` is asked by one thread, what it made runs on its lane's thread: only what lanes share needs a lock.
struct Fault {
  PlanHook plan;
  std::function<LaneFault(std::size_t lane)> lane;
};
using FaultSource = std::function<Fault()>;  ///< makes the fault anew for each case

/// The embedded GPT-2 engine (engine/session) as a backend; with a source of faults, a wrong one. Lanes run on threads of their own
/// in together().
[[nodiscard]] std::unique_ptr<Backend> make_engine_backend(FaultSource fault = {});

}  // namespace kvproof::harness
