#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "harness/trace/step.hpp"

namespace kvproof::harness {

/// A step as it stands in a trace: `op` first, defaults left out.
[[nodiscard]] nlohmann::ordered_json step_to_json(const Step& step);

/// Reads a step strictly. Errors: DataError for an unknown op, a missing or unknown field, a wrong type.
[[nodiscard]] Step step_from_json(const nlohmann::json& document, const std::string& where);

/// Reads a call and ignores fields it does not know, as the pipe protocol wants it.
[[nodiscard]] Call call_from_json(const nlohmann::json& document, const std::string& where);

/// All steps of a JSON array; `where` and the index name a step in errors.
[[nodiscard]] Trace trace_from_json(const nlohmann::json& array, const std::string& where);

}  // namespace kvproof::harness
