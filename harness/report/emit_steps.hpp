#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/oracle/expectation.hpp"
#include "harness/report/emit_transformers.hpp"

namespace kvproof::harness {

/// The statements of an emitted script's play(), and the parts of the prelude they call.
struct EmittedSteps {
  std::vector<std::string> lines;          ///< without indentation of play() itself
  std::vector<std::string_view> prelude;   ///< in the order of their first use
  bool recomputes = false;                 ///< needs the models in float64 too
};

/// Turns each step into calls of Transformers, with a comment that says what it is, and behind it the check that shows the finding.
///
/// Requires  outcomes of the trace; run.finding.
/// Errors    Error for a step that Transformers' GPT-2 has no words for.
[[nodiscard]] EmittedSteps emit_steps(const EmitRequest& request, const std::vector<Outcome>& outcomes);

}  // namespace kvproof::harness
