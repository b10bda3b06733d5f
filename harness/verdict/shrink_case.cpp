#include "harness/verdict/shrink_case.hpp"

namespace kvproof::harness {

Judgement judge_file(const TraceFile& file, const std::string& name, const Trial& trial) {
  return judge_case({name, file.trace, {file.run.poison}, trial.law}, trial.backend, trial.oracles, trial.tolerance);
}

SmallFailure smallest_failure(const TraceFile& file, const Judgement& found, const Trial& trial, std::size_t budget) {
  const FindingClass one = class_of(found.findings.front());
  const StillFails still_fails = [&](const TraceFile& smaller) {
    const Judgement judgement = judge_file(smaller, "shrink", trial);
    return !judgement.passed() && class_of(judgement.findings.front()) == one;
  };
  Shrunk shrunk = shrink(file, facts_of(trial.oracles), still_fails, budget);
  Judgement small = judge_file(shrunk.file, "shrink", trial);
  if (small.passed()) return {file, found, shrunk.asked, false};
  return {std::move(shrunk.file), std::move(small), shrunk.asked, shrunk.minimal};
}

}  // namespace kvproof::harness
