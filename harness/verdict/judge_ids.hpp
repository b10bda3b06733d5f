#pragma once
#include <cstdint>
#include <optional>
#include <vector>

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

struct JudgedIds {
  std::optional<Finding> finding;          ///< the first id that is not justified
  std::vector<std::uint64_t> row_hashes;   ///< of each (history, query) that an id was judged by, as Judgement::row_hashes without the model
};

/// Judges greedy ids by teacher forcing: each id must tie with the oracle's best for the ids before it, and where a row first
/// leaves what a golden recorded, the two ids must tie. What follows a row's eos is not judged; the number of columns is.
[[nodiscard]] JudgedIds judge_ids(const IdsWanted& wanted, const Rows& ids, const Oracle& oracle, const Tolerance& tolerance);

}  // namespace kvproof::harness
