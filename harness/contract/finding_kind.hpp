#pragma once
#include <cstddef>
#include <optional>
#include <string_view>

namespace kvproof::harness {

/// What can be wrong with one answer.
enum class FindingKind {
  wrong_logits,
  wrong_kv,
  wrong_ids,
  non_finite,       ///< a NaN or an infinity, in a hidden row too
  wrong_shape,      ///< rows or columns that nobody asked for, or none where there should be some
  wrong_length,
  accepts_misuse,   ///< carried out what the contract refuses
  refuses_valid,    ///< refused what the contract allows
  wrong_code,       ///< refused for another reason than the first that applies
  state_changed,    ///< K and V of a column, the caller's arrays, or anything after a refused call, are not what they were
  not_repeatable,   ///< the same call on the same state gave other bits
  broke_down,       ///< crashed, timed out, broke the protocol, or threw
};

inline constexpr std::size_t kFindingKindCount = 12;

[[nodiscard]] std::string_view finding_name(FindingKind kind) noexcept;
[[nodiscard]] std::optional<FindingKind> finding_from_name(std::string_view name) noexcept;

}  // namespace kvproof::harness
