#pragma once
#include <functional>
#include <memory>

#include "harness/backends/engine_lane.hpp"
#include "harness/contract/backend.hpp"

namespace kvproof::harness {

/// A lane with its number.
struct NumberedLane {
  EngineLane& lane;
  std::size_t number = 0;
};

/// How an engine is made wrong on purpose: it changes a plan before it runs, or stands between the call and the engine. Either may
/// be empty. It lives for one case, so that what it remembers belongs to that case.
struct Fault {
  PlanHook plan;
  std::function<Reply(NumberedLane, const Call&)> call;
};
using FaultSource = std::function<Fault()>;  ///< makes the fault anew for each case

/// The embedded GPT-2 engine (engine/session) as a backend; with a source of faults, a wrong one. Lanes run on threads of their own
/// in together().
[[nodiscard]] std::unique_ptr<Backend> make_engine_backend(FaultSource fault = {});

}  // namespace kvproof::harness
