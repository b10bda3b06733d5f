#pragma once
#include "harness/laws/builder.hpp"

namespace kvproof::harness {

/// `steps` random steps over all ops that the backend has, on up to four live caches of all kinds. Mostly legal; a call that is
/// refused is as good as any other. `read_only` percent of the forwards have use_cache: false.
void random_walk(TraceBuilder& b, std::size_t steps, unsigned read_only = 0);

}  // namespace kvproof::harness
