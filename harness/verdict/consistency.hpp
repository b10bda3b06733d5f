#pragma once
#include "harness/laws/law.hpp"
#include "harness/oracle/expectation.hpp"
#include "harness/runner/play.hpp"
#include "harness/verdict/judge.hpp"

namespace kvproof::harness {

/// All that the bits of a forward's answer may depend on: the call, the storage, and how each row's history was fed. Equal = identical calls.
[[nodiscard]] std::uint64_t state_of_call(const Step& step, const Outcome& outcome);

/// Judges a backend against itself, without any oracle: what both sides have wrong in the same way still shows.
///
/// same     columns that mean the same (RowHistory::meaning_hashes) have logits within the bound of the first of them; K and V of
///          one column are the same bits whenever and through whichever cache they are read.
/// repeat   a forward repeated on an identical state, in an identical storage, gives the same bits.
/// differ   columns that differ in nothing but positions have logits further apart than the bound.
void judge_consistency(const Trace& trace, const std::vector<Expectation>& expected, const Observations& observed, const LawJudgement& law,
                       const Tolerance& tolerance, Judgement& judgement);

}  // namespace kvproof::harness
