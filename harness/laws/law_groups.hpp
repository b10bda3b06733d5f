#pragma once
#include <vector>

#include "harness/laws/law.hpp"

namespace kvproof::harness {

/// The laws of each family, in the order of the contract's table.
[[nodiscard]] std::vector<Law> length_laws();
[[nodiscard]] std::vector<Law> mask_laws();
[[nodiscard]] std::vector<Law> position_laws();
[[nodiscard]] std::vector<Law> padding_laws();
[[nodiscard]] std::vector<Law> isolation_laws();
[[nodiscard]] std::vector<Law> cache_laws();
[[nodiscard]] std::vector<Law> window_laws();
[[nodiscard]] std::vector<Law> numerics_laws();
[[nodiscard]] std::vector<Law> generate_laws();

}  // namespace kvproof::harness
