#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/history/refusals.hpp"
#include "harness/trace/step.hpp"

namespace kvproof::harness {

/// What to take out of a trace.
struct Removal {
  using Places = std::set<std::pair<std::size_t, std::size_t>>;
  std::set<std::size_t> steps;
  Places columns;  ///< (step, t): new column t of a forward or of a generate's prompt
  Places rows;     ///< (step, row) where the rows of a batch begin: see StepShape::rows
};

/// What of a step can be taken out, and where its columns stand.
struct StepShape {
  std::size_t past = 0;     ///< columns held before
  std::size_t columns = 0;  ///< new ones: of a forward, or of a generate's prompt
  std::size_t rows = 0;     ///< of a forward on an empty cache or on none, a generate, a gather that may change their number; else 0
  bool refused = false;
  std::size_t lane = 0;
};
[[nodiscard]] std::vector<StepShape> shapes_of(const Trace& trace, const std::map<std::string, ModelFacts>& models);

/// The trace without what is removed, so that the rest still means the same where it can: later masks lose the columns that were
/// never fed, later calls and gathers lose the rows, crops keep the columns they kept, recorded lengths and codes follow.
/// A call whose shape was wrong keeps its error: a mask one too short stays one too short.
///
/// Errors    DataError for a model that `models` does not name.
[[nodiscard]] Trace without(const Trace& trace, const Removal& removal, const std::map<std::string, ModelFacts>& models);

}  // namespace kvproof::harness
