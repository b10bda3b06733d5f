#pragma once
#include "harness/laws/shrink.hpp"
#include "harness/verdict/judge_case.hpp"

namespace kvproof::harness {

/// What a failing trace is judged by, again and again; borrowed.
struct Trial {
  LawJudgement law;
  Backend& backend;         ///< has the models of `oracles` open
  const Oracles& oracles;
  const Tolerance& tolerance;
};

/// Judges a trace file by its trial.
[[nodiscard]] Judgement judge_file(const TraceFile& file, const std::string& name, const Trial& trial);

/// A failing trace that nothing can be taken from, and what is wrong with it.
struct SmallFailure {
  TraceFile file;
  Judgement judgement;
  std::size_t asked = 0;  ///< smaller traces played
  bool minimal = false;   ///< false if the budget ran out, or if the failure does not come every time: then `file` is as it was found
};

/// Shrinks a failing trace: what is left fails by the same law, and its first finding is of the same kind and about the same refusal.
///
/// Requires  `found`, the judgement of `file`, has a finding.
/// Errors    whatever begin() of the backend throws.
[[nodiscard]] SmallFailure smallest_failure(const TraceFile& file, const Judgement& found, const Trial& trial, std::size_t budget = kShrinkBudget);

}  // namespace kvproof::harness
