#pragma once
#include <span>

#include "engine/cache/kv_cache.hpp"
#include "engine/forward/step_plan.hpp"
#include "engine/forward/workspace.hpp"
#include "engine/model/model.hpp"

namespace kvproof {

/// Number of logits a plan asks for: rows * vocab_size, rows = B*T, B or 0.
[[nodiscard]] std::size_t logits_size(const StepPlan& plan, const Config& config) noexcept;

/// Executes a plan: embed, blocks, final norm, vocabulary product. It checks nothing and decides nothing.
///
/// Shapes    logits [B, T, vocab], [B, 1, vocab] or empty, as the plan says.
/// Requires  cache->reserve(B, T) and workspace.reserve() have been called; cache may be null if the plan reads and writes no slot.
/// Numerics  a query that sees no key gets attention output 0; nothing that is not visible is read.
/// Errors    none: it cannot fail half-way. The cache is advanced at the very end, if the plan writes or moves the length.
void run_step(const Model& model, const StepPlan& plan, KvCache* cache, Workspace& workspace, std::span<float> logits) noexcept;

}  // namespace kvproof
