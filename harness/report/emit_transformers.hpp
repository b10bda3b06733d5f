#pragma once
#include <map>
#include <string>

#include "harness/history/refusals.hpp"
#include "harness/trace/trace_file.hpp"
#include "harness/verdict/tolerance.hpp"

namespace kvproof::harness {

/// What an emitted script is made of.
struct EmitRequest {
  const TraceFile& file;                            ///< `run.finding` says what is to be shown
  std::string name;                                 ///< of the file, for the script's first lines
  const std::map<std::string, ModelFacts>& models;
  Tolerance tolerance;
};

/// A Python script that plays a trace with plain calls of Hugging Face Transformers and shows what was found (docs/emit.md). It needs
/// torch, transformers and numpy, nothing of ours. The same file gives the same bytes.
///
/// Errors    Error, in words, for what cannot be said that way: no finding in the file, a window, lanes, poison, codes, a trace that
///           is only about its own words.
[[nodiscard]] std::string transformers_script(const EmitRequest& request);

}  // namespace kvproof::harness
