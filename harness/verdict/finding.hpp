#pragma once
#include <cstddef>
#include <optional>
#include <string>
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
  state_changed,    ///< K and V of a column, or the caller's arrays, are not what they were
  not_repeatable,   ///< the same call on the same state gave other bits
  broke_down,       ///< crashed, timed out, broke the protocol, or threw
};

[[nodiscard]] std::string_view finding_name(FindingKind kind) noexcept;

/// Where two numbers differ most, or first.
struct Place {
  std::size_t row = 0;      ///< of the batch
  std::size_t column = 0;   ///< of the answer: the index of the new (or stored) column
  std::size_t element = 0;  ///< token id of a logit; head * head_dim + d of a key or value
  double got = 0, want = 0, bound = 0;
};

/// One answer that is not as expected.
struct Finding {
  FindingKind kind{};
  std::size_t step = 0;
  std::optional<Place> place;
  std::string message;  ///< in words, with both values
};

}  // namespace kvproof::harness
