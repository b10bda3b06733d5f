#pragma once
#include <cstdint>
#include <vector>

namespace kvproof {

/// Integers of a batch as a caller writes them: one list per row. It may be ragged or empty: a wrong call must be sayable.
using Rows = std::vector<std::vector<std::int64_t>>;

}  // namespace kvproof
