#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace kvproof::harness {

/// Splits a command into words as a shell does: spaces and tabs between words, '…', "…" and \ to keep them inside one.
///
/// Nothing is expanded: no variables, no globs, no substitutions. `sh -c '…'` has all of them.
/// Errors    Error for an open quote, a trailing backslash, or no word at all.
[[nodiscard]] std::vector<std::string> split_command(std::string_view command);

}  // namespace kvproof::harness
