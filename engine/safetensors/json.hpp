#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace kvproof {

/// Parses one JSON text strictly: UTF-8, no duplicate keys, no text after it, at most 64 levels deep.
///
/// Errors    DataError: `where` @ byte N: what was found, what was expected.
[[nodiscard]] nlohmann::json parse_json(std::string_view text, const std::string& where);

}  // namespace kvproof
