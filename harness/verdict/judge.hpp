#pragma once
#include <vector>

#include "harness/contract/capabilities.hpp"
#include "harness/oracle/expectation.hpp"
#include "harness/runner/play.hpp"
#include "harness/verdict/compare.hpp"
#include "harness/verdict/finding.hpp"

namespace kvproof::harness {

/// What a played trace amounts to.
struct Judgement {
  std::vector<Finding> findings;   ///< in the order of their steps
  Comparison numbers;
  std::size_t worst_step = 0;      ///< of numbers.worst
  std::size_t checks = 0;          ///< refusals, lengths and shapes judged
  std::optional<std::string> not_covered;  ///< a step the backend answered with `unsupported`

  [[nodiscard]] bool passed() const noexcept { return findings.empty(); }
};

/// Judges every observation against its expectation.
///
/// `oracles` justify greedy ids by teacher forcing.
[[nodiscard]] Judgement judge(const Trace& trace, const std::vector<Expectation>& expected, const Observations& observed,
                              const Capabilities& capabilities, const Tolerance& tolerance, const Oracles& oracles);

}  // namespace kvproof::harness
