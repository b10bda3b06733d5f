#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/session/past_mask.hpp"
#include "engine/session/refused.hpp"
#include "engine/session/session.hpp"

namespace kvproof {

// Every refusal of docs/contract.md, in the order of its table. A check reads, throws Refused or returns, and writes nothing;
// a check that passes allocates nothing. Session runs them before the first write of a call.

/// What a cache says about the calls it accepts. Defaults: no cache, or an empty one.
struct HeldColumns {
  std::size_t length = 0;                 ///< P
  const PastMask* mask = nullptr;         ///< [B][P]; null if there are no columns
  std::optional<std::size_t> capacity{};  ///< what bounds P + T: the capacity of kind `static`
};

/// bad_argument
void check_cache_options(const CacheOptions& options);

/// model_mismatch
void check_model(bool same_model);

/// bad_argument, then empty_input … capacity.
void check_forward(const Config& config, const HeldColumns& held, const ForwardInput& input);

/// bad_argument, then empty_input … capacity for the prompt and for all columns and positions that will be fed.
void check_generate(const Config& config, const GenerateInput& input);

/// layer_range
void check_layer(std::size_t n_layer, std::int64_t layer);

/// crop_range, crop_evicted.
void check_crop(const KvCache& cache, std::int64_t length);

/// row_range
void check_gather(const KvCache& cache, std::span<const std::int64_t> rows);

}  // namespace kvproof
