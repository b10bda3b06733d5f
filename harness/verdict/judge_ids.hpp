#pragma once
#include <optional>

#include "harness/contract/call.hpp"
#include "harness/history/world.hpp"
#include "harness/oracle/oracle.hpp"
#include "harness/verdict/finding.hpp"
#include "harness/verdict/tolerance.hpp"

namespace kvproof::harness {

/// Judges greedy ids by teacher forcing: each id must tie with the oracle's best for the ids before it. What follows a row's
/// eos is not judged; the number of columns is.
///
/// `outcome` holds the prompt's rows. Returns the first id that is not justified.
[[nodiscard]] std::optional<Finding> judge_ids(const Generate& call, const Outcome& outcome, const Rows& ids, const Oracle& oracle,
                                               const Tolerance& tolerance);

}  // namespace kvproof::harness
