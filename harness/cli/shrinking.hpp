#pragma once
#include <string>

#include "harness/laws/law.hpp"
#include "harness/trace/trace_file.hpp"

namespace kvproof::harness {

/// The judgements that a trace file's header asks for. Errors: DataError for an unknown law.
[[nodiscard]] LawJudgement judgement_of(const TraceFile& file, const std::string& where);

/// One step a line, with its number.
[[nodiscard]] std::string steps_text(const Trace& trace);

}  // namespace kvproof::harness
