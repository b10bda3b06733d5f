#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "harness/contract/finding_kind.hpp"
#include "harness/contract/refusal_code.hpp"

namespace kvproof::harness {

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
  std::optional<Code> code{};  ///< the refusal it is about: the one expected, or of refuses_valid the one that came
};

/// What sets one fault of an engine apart from another under the same law, as far as a list can say it.
struct FindingClass {
  FindingKind kind{};
  std::optional<Code> code;
  auto operator<=>(const FindingClass&) const = default;
};

[[nodiscard]] inline FindingClass class_of(const Finding& finding) noexcept { return {finding.kind, finding.code}; }

/// `accepts_misuse mask_length`, or just `wrong_logits`.
[[nodiscard]] std::string class_text(const FindingClass& one);

}  // namespace kvproof::harness
