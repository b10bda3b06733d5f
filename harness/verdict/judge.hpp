#pragma once
#include "harness/contract/capabilities.hpp"
#include "harness/oracle/expectation.hpp"
#include "harness/runner/play.hpp"
#include "harness/verdict/judgement.hpp"
#include "harness/verdict/tolerance.hpp"

namespace kvproof::harness {

/// Judges every observation against its expectation, up to the first that the backend does not support.
///
/// `oracles` justify greedy ids by teacher forcing.
[[nodiscard]] Judgement judge(const Trace& trace, const std::vector<Expectation>& expected, const Observations& observed,
                              const Capabilities& capabilities, const Tolerance& tolerance, const Oracles& oracles);

}  // namespace kvproof::harness
