#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/cache/kv_cache.hpp"

namespace kvproof {

enum class LogitsWanted { all, last, none };

/// One forward call as indices: everything that was decided, nothing that is computed.
///
/// Shapes    B = batch, T = new_columns, S = read_slot.size(); keys of a query = the S past columns read, then the T new ones.
/// Lifetime  plain data; reused from step to step so that a decode step allocates nothing.
struct StepPlan {
  std::size_t batch = 0;
  std::size_t new_columns = 0;
  std::size_t past_length = 0;
  std::size_t new_length = 0;              ///< what the cache holds afterwards; past_length if nothing is appended
  std::vector<std::uint32_t> token;        ///< [B, T]
  std::vector<std::uint32_t> position;     ///< [B, T]
  std::vector<std::size_t> read_slot;      ///< [S], oldest first
  std::vector<std::uint8_t> visible;       ///< [B, T, S + T]; 1 = this query sees this key
  std::vector<SlotWrite> writes;           ///< which new columns are stored, and where; empty for a read-only call
  LogitsWanted logits = LogitsWanted::all;
};

}  // namespace kvproof
