#pragma once
#include "harness/defects/catalogue.hpp"

namespace kvproof::harness {

[[nodiscard]] std::vector<KnownFault> plan_faults();     ///< wrong indices: positions, what is seen, what is read
[[nodiscard]] std::vector<KnownFault> call_faults();     ///< an op that does something else, or a reply that says something else
[[nodiscard]] std::vector<KnownFault> storage_faults();  ///< keys and values that other caches write

}  // namespace kvproof::harness
