#pragma once
#include <cstddef>

#include "engine/forward/step_plan.hpp"
#include "engine/session/session.hpp"

namespace kvproof {

/// Turns a checked call into indices: which positions, which slots are read and written, what each query sees.
///
/// A pure function of the call and of the cache's lengths, window and slots; it reads no number the model computes.
/// Shapes    as StepPlan. Past columns are listed oldest first, from the first one that any new query can see.
/// Requires  check_forward() passed. `cache` null = a full pass without a cache.
/// Errors    std::bad_alloc; `plan` is then unspecified.
/// Cost      O(B * T * (S + T)); allocates only what `plan` does not yet hold.
/// Source    rules 1, 2 and 5 of docs/contract.md.
void plan_step(const ForwardInput& input, const KvCache* cache, StepPlan& plan);

/// Makes room for steps of one column over up to `columns` columns, so that planning them allocates nothing.
void reserve_plan(StepPlan& plan, std::size_t batch, std::size_t columns);

/// How many logits columns a plan asks for: T, 1 or 0.
[[nodiscard]] std::size_t logits_columns(const StepPlan& plan) noexcept;

}  // namespace kvproof
