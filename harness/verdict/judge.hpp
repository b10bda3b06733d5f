#pragma once
#include "harness/contract/capabilities.hpp"
#include "harness/oracle/expectation.hpp"
#include "harness/runner/play.hpp"
#include "harness/verdict/judgement.hpp"
#include "harness/verdict/tolerance.hpp"

namespace kvproof::harness {

/// Forgets what a lane answered after the first call that the engine carried out and the contract refuses, or the other way round,
/// or that the engine cannot express: from there on the engine's history and the trace's are two, and a difference says nothing.
void forget_after_parting(const Trace& trace, const std::vector<Expectation>& expected, Observations& observed);

/// What a judgement goes by besides the expectations; borrowed.
struct Standards {
  const Capabilities& capabilities;  ///< what the backend claims of itself
  const Tolerance& tolerance;
  const Oracles& oracles;            ///< justify greedy ids by teacher forcing
};

/// Judges every observation against its expectation, up to the first that the backend does not support.
[[nodiscard]] Judgement judge(const Trace& trace, const std::vector<Expectation>& expected, const Observations& observed, const Standards& standards);

}  // namespace kvproof::harness
