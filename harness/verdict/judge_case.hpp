#pragma once
#include "harness/contract/backend.hpp"
#include "harness/laws/law.hpp"
#include "harness/oracle/oracle.hpp"
#include "harness/verdict/judge.hpp"

namespace kvproof::harness {

/// A trace to play, and how it is judged.
struct Case {
  std::string name;
  const Trace& trace;
  RunOptions options;
  LawJudgement law;  ///< which judgements it gets beside refusals, lengths and shapes
};

/// What a trace that belongs to no law gets: the oracle, and the backend against itself.
inline constexpr LawJudgement kEveryJudgement{.oracle = true, .same = true};

/// Plays one case on a backend that has the models of `oracles` open, and judges it. A trace the backend cannot express is not
/// played: `not_covered` says why.
///
/// A first finding behind a refused call that goes away when the call is left out is `state_changed` with the refusal's code: the trace
/// is played again without it (the only second plays there are).
[[nodiscard]] Judgement judge_case(const Case& each, Backend& backend, const Oracles& oracles, const Tolerance& tolerance);

}  // namespace kvproof::harness
