#pragma once
#include "harness/laws/builder.hpp"

namespace kvproof::harness {

/// `steps` random steps over all ops that the backend has, on up to four live caches of all kinds. Mostly legal; a call that is
/// refused is as good as any other.
void random_walk(TraceBuilder& b, std::size_t steps);

}  // namespace kvproof::harness
