#include "harness/cli/shrinking.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/error.hpp"
#include "harness/laws/shrink.hpp"
#include "harness/trace/step_json.hpp"
#include "harness/verdict/judge_case.hpp"

namespace kvproof::harness {

SmallFailure smallest_failure(const TraceFile& file, const Judgement& judgement, Backend& backend, const Oracles& oracles, const Tolerance& tolerance) {
  const LawJudgement law = judgement_of(file, "trace");
  const auto judged = [&](const TraceFile& smaller) { return judge_case({"shrink", smaller.trace, {smaller.run.poison}, law}, backend, oracles, tolerance); };
  const FindingKind kind = judgement.findings.front().kind;
  Shrunk shrunk = shrink(file, facts_of(oracles), [&](const TraceFile& smaller) {
    const Judgement verdict = judged(smaller);
    return !verdict.passed() && verdict.findings.front().kind == kind;
  });
  Judgement small = judged(shrunk.file);
  if (small.passed()) return {file, judgement, false};  // it does not fail every time: show it as it was found
  return {std::move(shrunk.file), std::move(small), shrunk.minimal};
}

LawJudgement judgement_of(const TraceFile& file, const std::string& where) {
  if (!file.run.law) return kEveryJudgement;
  if (const Law* law = find_law(*file.run.law)) return law->judgement;
  throw DataError({where + ": run", fmt::format("unknown law \"{}\"", *file.run.law), "a law of docs/contract.md", ""});
}

std::string steps_text(const Trace& trace) {
  std::string text;
  for (std::size_t i = 0; i < trace.size(); ++i) text += fmt::format("  {:>3} {}\n", i, step_to_json(trace[i]).dump());
  return text;
}

}  // namespace kvproof::harness
