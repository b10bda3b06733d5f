#include "harness/verdict/judge_case.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/runner/coverage.hpp"
#include "harness/verdict/consistency.hpp"

namespace kvproof::harness {
namespace {

/// Who is judged, by whom.
struct Court {
  Backend& backend;
  const Oracles& oracles;
  const Tolerance& tolerance;
};

/// One play of a trace: what should have come, what came, and what is wrong with it.
struct Played {
  std::vector<Expectation> expected;
  Observations observed;
  Judgement judgement;
};

Played play_and_judge(const Case& each, const Court& court) {
  const Capabilities& capabilities = court.backend.capabilities();
  Played played;
  played.expected = expect_shapes(each.trace, facts_of(court.oracles));
  played.judgement.not_covered = not_covered(capabilities, each.trace, outcomes_of(played.expected), each.options);
  if (played.judgement.not_covered) return played;
  if (each.law.oracle) played.expected = expect_from_oracle(each.trace, court.oracles, court.tolerance.derived);
  played.observed = play(court.backend, each.trace, each.name, each.options);
  forget_after_parting(each.trace, played.expected, played.observed);
  played.judgement = judge(each.trace, played.expected, played.observed, {capabilities, court.tolerance, court.oracles});
  LawJudgement law = each.law;
  law.repeat = law.repeat && capabilities.deterministic;
  judge_consistency(each.trace, played.expected, played.observed, law, court.tolerance, played.judgement);
  return played;
}

/// Kinds that a change of state shows as.
bool may_be_a_change(FindingKind kind) {
  return kind == FindingKind::wrong_logits || kind == FindingKind::wrong_kv || kind == FindingKind::wrong_length || kind == FindingKind::wrong_shape ||
         kind == FindingKind::non_finite || kind == FindingKind::refuses_valid || kind == FindingKind::state_changed;
}

/// Whether everything up to and with `step` is in order once `refused` is left out. What comes later is not played: it has no say.
bool right_without(std::size_t refused, std::size_t step, const Case& each, const Court& court) {
  Trace trace(each.trace.begin(), each.trace.begin() + static_cast<std::ptrdiff_t>(step) + 1);
  trace.erase(trace.begin() + static_cast<std::ptrdiff_t>(refused));
  const Judgement judgement = play_and_judge({each.name, trace, each.options, each.law}, court).judgement;
  return !judgement.not_covered && judgement.passed();
}

/// If the first finding goes away once a refused call before it is left out, that call changed what it should not have touched.
void blame_refusal(const Case& each, const Court& court, Played& played) {
  if (played.judgement.passed() || !may_be_a_change(played.judgement.findings.front().kind)) return;
  Finding& first = played.judgement.findings.front();
  for (std::size_t i = first.step; i-- > 0;) {
    if (!played.expected[i].outcome.refusal || each.trace[i].lane != each.trace[first.step].lane) continue;
    if (!right_without(i, first.step, each, court)) continue;
    const Code code = played.expected[i].outcome.refusal->code;
    first.message = fmt::format("changed by the call that was refused at step {} ({}): {}", i, code_name(code), first.message);
    first.kind = FindingKind::state_changed;
    first.code = code;
    return;
  }
}

}  // namespace

Judgement judge_case(const Case& each, Backend& backend, const Oracles& oracles, const Tolerance& tolerance) {
  const Court court{backend, oracles, tolerance};
  Played played = play_and_judge(each, court);
  blame_refusal(each, court, played);
  return std::move(played.judgement);
}

}  // namespace kvproof::harness
