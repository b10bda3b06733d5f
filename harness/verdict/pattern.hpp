#pragma once
#include <string_view>

namespace kvproof::harness {

/// Whether `text` is what `pattern` says, in which each `*` stands for any run of characters, none included.
///
/// Cost      at most pattern.size() * text.size() steps, whatever the pattern.
[[nodiscard]] bool matches_pattern(std::string_view pattern, std::string_view text) noexcept;

}  // namespace kvproof::harness
