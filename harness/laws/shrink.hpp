#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/history/refusals.hpp"
#include "harness/trace/trace_file.hpp"

namespace kvproof::harness {

/// Whether a smaller trace still fails, by the same law and with the same kind of finding.
using StillFails = std::function<bool(const TraceFile&)>;

/// How often the predicate is asked at most. A failing case of the laws takes 100 to 600 questions.
inline constexpr std::size_t kShrinkBudget = 4000;

struct Shrunk {
  TraceFile file;
  std::size_t asked = 0;  ///< calls of the predicate
  bool minimal = false;   ///< nothing of single_removals() can go any more; false only if the budget ran out
};

/// Makes a failing trace small: delta debugging over steps, rows and columns; then simpler kinds, masks, positions, smaller capacities,
/// windows and token ids; all again until nothing helps. The same trace and predicate give the same result.
///
/// Requires  still_fails(file); `models` names every model of the file.
/// Errors    whatever the predicate throws.
[[nodiscard]] Shrunk shrink(TraceFile file, const std::map<std::string, ModelFacts>& models, const StillFails& still_fails,
                            std::size_t budget = kShrinkBudget);

/// The trace with one step, one row or one token less, each way of it.
[[nodiscard]] std::vector<Trace> single_removals(const Trace& trace, const std::map<std::string, ModelFacts>& models);

}  // namespace kvproof::harness
