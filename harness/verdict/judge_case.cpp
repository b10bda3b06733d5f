#include "harness/verdict/judge_case.hpp"

#include "harness/runner/coverage.hpp"
#include "harness/verdict/consistency.hpp"

namespace kvproof::harness {

Judgement judge_case(const Case& each, Backend& backend, const Oracles& oracles, const Tolerance& tolerance) {
  const Capabilities& capabilities = backend.capabilities();
  std::vector<Expectation> expected = expect_shapes(each.trace, facts_of(oracles));
  std::vector<Outcome> outcomes;
  for (const Expectation& expectation : expected) outcomes.push_back(expectation.outcome);
  Judgement judgement;
  judgement.not_covered = not_covered(capabilities, each.trace, outcomes, each.options);
  if (judgement.not_covered) return judgement;
  if (each.law.oracle) expected = expect_from_oracle(each.trace, oracles, tolerance.derived);
  const Observations observed = play(backend, each.trace, each.name, each.options);
  judgement = judge(each.trace, expected, observed, capabilities, tolerance, oracles);
  LawJudgement law = each.law;
  law.repeat = law.repeat && capabilities.deterministic;
  judge_consistency(each.trace, expected, observed, law, tolerance, judgement);
  return judgement;
}

}  // namespace kvproof::harness
