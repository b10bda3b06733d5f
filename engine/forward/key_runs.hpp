#pragma once
#include <cstddef>
#include <vector>

#include "engine/forward/step_plan.hpp"

namespace kvproof {

/// The queries of one row of the batch that are computed together: new columns [first, first + count).
struct QueryBlock {
  std::size_t row = 0;
  std::size_t first = 0, count = 0;
};

/// How many queries share a block: enough for a real matrix product, few enough that scores stay in the processor's cache.
inline constexpr std::size_t kQueryBlock = 64;

/// Keys that lie one behind the other, all in the cache or all in the chunk, and are seen by all queries of a block or by some.
struct KeyRun {
  std::size_t key = 0;      ///< index of the first key among the S + T keys of the plan
  std::size_t count = 0;
  std::size_t place = 0;    ///< slot in the cache, or column of the chunk, of the first key
  bool in_cache = false;
  bool seen_by_all = false; ///< otherwise by some, and plan.visible says by whom
};

/// Cuts the keys that at least one query of the block sees into runs, oldest first. Keys nobody sees are in no run.
///
/// Cost      allocates nothing if `runs` has room for S + T runs.
void find_key_runs(const StepPlan& plan, const QueryBlock& block, std::vector<KeyRun>& runs);

}  // namespace kvproof
