#include "harness/cli/shrinking.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/error.hpp"
#include "harness/trace/step_json.hpp"
#include "harness/verdict/judge_case.hpp"

namespace kvproof::harness {

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
