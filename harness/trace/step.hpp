#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "harness/contract/call.hpp"
#include "harness/contract/refusal_code.hpp"

namespace kvproof::harness {

/// One call of a trace and what the file says of it.
struct Step {
  Call call;
  std::optional<Code> error;           ///< the code the contract refuses it with, if the file says so
  std::optional<std::int64_t> expect;  ///< of `length`: the number of columns, if the file says so
  std::size_t lane = 0;
  bool operator==(const Step&) const = default;
};

using Trace = std::vector<Step>;

}  // namespace kvproof::harness
