#pragma once
#include <string>

namespace kvproof::harness {

/// The command as it was typed ("build/release/kvproof"), so that a replay line can be pasted as it is.
///
/// Threads   set once, by main, before anything runs.
void set_program(const std::string& typed);
[[nodiscard]] const std::string& program() noexcept;

}  // namespace kvproof::harness
