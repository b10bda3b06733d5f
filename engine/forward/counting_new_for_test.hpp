#pragma once
#include <cstddef>

namespace kvproof::test {

/// Calls of operator new in this program so far.
[[nodiscard]] std::size_t allocations() noexcept;

}  // namespace kvproof::test
