#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/verdict/compare.hpp"
#include "harness/verdict/finding.hpp"

namespace kvproof::harness {

/// What a played trace amounts to.
struct Judgement {
  std::vector<Finding> findings;           ///< in the order of their steps
  Comparison numbers;
  std::size_t worst_step = 0;              ///< of numbers.worst
  std::size_t checks = 0;                  ///< refusals, lengths and shapes judged
  std::vector<std::uint64_t> row_hashes;   ///< of each row of logits compared: its model, history and query; equal = the same row
  std::optional<std::string> not_covered;  ///< the step the backend answered with `unsupported`; nothing is judged from there on

  [[nodiscard]] bool passed() const noexcept { return findings.empty(); }
};

}  // namespace kvproof::harness
