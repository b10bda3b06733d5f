#pragma once
#include "harness/contract/refusal_code.hpp"
#include "harness/laws/builder.hpp"

namespace kvproof::harness {

/// Builds two warm caches and breaks a rule on one of them so that exactly `code` is the first that applies, then lets both work on.
void misuse(TraceBuilder& b, Code code);

}  // namespace kvproof::harness
