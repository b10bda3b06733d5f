#pragma once
#include <cstddef>
#include <optional>
#include <string_view>

namespace kvproof::harness {

/// Why a call is refused, in the order in which the codes apply: the first one counts (docs/contract.md).
enum class Code {
  unknown_cache,
  model_mismatch,
  cache_exists,
  name_unknown,
  bad_argument,
  layer_range,
  empty_input,
  batch_mismatch,
  token_range,
  mask_length,
  mask_value,
  mask_revival,
  position_shape,
  position_range,
  context_length,
  capacity,
  crop_range,
  crop_evicted,
  row_range,
  other,  ///< what a backend without codes of its own answers
};

inline constexpr std::size_t kCodeCount = 19;  ///< the codes of the contract, without `other`

[[nodiscard]] std::string_view code_name(Code code) noexcept;
[[nodiscard]] std::optional<Code> code_from_name(std::string_view name) noexcept;

/// True for the codes that concern only the words of a trace (names of caches, kinds): never a finding about an engine.
[[nodiscard]] bool concerns_trace_words(Code code) noexcept;

}  // namespace kvproof::harness
