#pragma once
#include <string>

#include "harness/contract/backend.hpp"
#include "harness/laws/law.hpp"
#include "harness/oracle/oracle.hpp"
#include "harness/trace/trace_file.hpp"
#include "harness/verdict/judgement.hpp"
#include "harness/verdict/tolerance.hpp"

namespace kvproof::harness {

/// A failing trace that nothing can be taken from, and what is wrong with it.
struct SmallFailure {
  TraceFile file;
  Judgement judgement;
  bool minimal = false;  ///< false only if the budget of tries ran out
};

/// Shrinks a failing trace: what is left fails by the same law with the same kind of finding. `backend` has the models open.
[[nodiscard]] SmallFailure smallest_failure(const TraceFile& file, const Judgement& judgement, Backend& backend, const Oracles& oracles, const Tolerance& tolerance);

/// The judgements that a trace file's header asks for. Errors: DataError for an unknown law.
[[nodiscard]] LawJudgement judgement_of(const TraceFile& file, const std::string& where);

/// One step a line, with its number.
[[nodiscard]] std::string steps_text(const Trace& trace);

}  // namespace kvproof::harness
