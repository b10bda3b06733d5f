#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/rows.hpp"

namespace kvproof::harness {

/// A string literal of Python in ASCII, whatever bytes `text` holds.
[[nodiscard]] std::string python_string(std::string_view text);

/// `[[1, 2], [3]]`
[[nodiscard]] std::string python_rows(const Rows& rows);
[[nodiscard]] std::string python_list(const std::vector<std::int64_t>& row);

/// A JSON document as a literal of Python; objects with `indent` blanks before each key, one key a line.
[[nodiscard]] std::string python_literal(const std::string& json, std::size_t indent);

/// `text` in one comment or docstring line: no control characters, no quotes that would end a docstring, no backslash.
[[nodiscard]] std::string python_words(std::string_view text);

/// A name of Python made of any name, and another one of each: `_` becomes `__`, what is no letter or digit its number.
[[nodiscard]] std::string python_name(std::string_view prefix, std::string_view name);

}  // namespace kvproof::harness
