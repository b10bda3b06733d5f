#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/rows.hpp"
#include "harness/contract/refusal_code.hpp"

namespace kvproof::harness {

/// Numbers of an answer. Floats are widened to double, which loses nothing: equal bits stay equal.
struct Tensor {
  std::vector<std::size_t> shape;
  std::vector<double> values;  ///< row-major
  bool operator==(const Tensor&) const = default;
};

/// A call that was carried out. Only the fields its op speaks of are set.
struct Answer {
  std::optional<Tensor> logits;         ///< [B, T or 1, vocab_size]
  std::optional<Tensor> keys, values;   ///< [B, H, S, D]
  std::optional<std::int64_t> length;
  std::optional<Rows> ids;              ///< [B][n]
  bool operator==(const Answer&) const = default;
};

/// A call that was refused.
struct Refusal {
  Code code = Code::other;
  std::string message;
  bool operator==(const Refusal&) const = default;
};

/// A call the backend cannot express: not covered, never a refusal.
struct Unsupported {
  std::string reason;
  bool operator==(const Unsupported&) const = default;
};

/// A backend that broke down over a call: crashed, timed_out, protocol_error or backend_threw.
struct Breakdown {
  std::string kind;
  std::string message;
  bool operator==(const Breakdown&) const = default;
};

using Reply = std::variant<Answer, Refusal, Unsupported, Breakdown>;

}  // namespace kvproof::harness
