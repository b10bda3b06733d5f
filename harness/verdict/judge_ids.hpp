#pragma once
#include <optional>

#include "harness/contract/call.hpp"
#include "harness/history/world.hpp"
#include "harness/oracle/oracle.hpp"
#include "harness/verdict/finding.hpp"
#include "harness/verdict/tolerance.hpp"

namespace kvproof::harness {

/// What greedy ids are judged against; borrowed.
struct IdsWanted {
  const Generate& call;
  const Outcome& outcome;               ///< holds the prompt's rows
  const std::optional<Rows>& recorded;  ///< of a golden: [B][n]
};

/// Judges greedy ids by teacher forcing: each id must tie with the oracle's best for the ids before it, and where a row first
/// leaves what a golden recorded, the two ids must tie. What follows a row's eos is not judged; the number of columns is.
///
/// Returns the first id that is not justified.
[[nodiscard]] std::optional<Finding> judge_ids(const IdsWanted& wanted, const Rows& ids, const Oracle& oracle, const Tolerance& tolerance);

}  // namespace kvproof::harness
