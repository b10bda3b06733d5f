#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/contract/call.hpp"
#include "harness/contract/reply.hpp"
#include "harness/history/row_history.hpp"

namespace kvproof::harness {

/// What of a model the contract speaks of.
struct ModelFacts {
  std::size_t vocab_size = 0, n_positions = 0, n_layer = 0, n_head = 0, head_dim = 0;
};

/// A cache as the contract sees it.
struct CacheState {
  std::string kind, model;
  std::optional<std::size_t> capacity;
  std::optional<std::size_t> window;  ///< in force: min(window, capacity)
  std::vector<RowHistory> rows;                  ///< [B]; empty while the cache is empty
  std::vector<std::vector<std::uint8_t>> mask;   ///< [B][P]: present mask bits
  std::size_t length = 0;                        ///< P
  std::size_t gone = 0;                          ///< columns lost to the window

  [[nodiscard]] bool fixed_batch() const noexcept { return kind != "dynamic"; }
};

/// The first code of the table that applies to a call whose names are in order, or nothing. Pure: nothing is changed.
/// Source    docs/contract.md, Refusals.
[[nodiscard]] std::optional<Refusal> refuse_new(const NewCache& call);
[[nodiscard]] std::optional<Refusal> refuse_forward(const Forward& call, const CacheState* cache, const ModelFacts& model);
[[nodiscard]] std::optional<Refusal> refuse_read(const Read& call, const ModelFacts& model);
[[nodiscard]] std::optional<Refusal> refuse_crop(const Crop& call, const CacheState& cache);
[[nodiscard]] std::optional<Refusal> refuse_gather(const Gather& call, const CacheState& cache);
[[nodiscard]] std::optional<Refusal> refuse_generate(const Generate& call, const ModelFacts& model);

/// Positions that skip hidden columns: running sum of the mask - 1, at least 0.
[[nodiscard]] std::vector<std::int64_t> positions_of_mask(const std::vector<std::int64_t>& mask);

}  // namespace kvproof::harness
