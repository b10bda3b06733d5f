#pragma once
#include <cstddef>
#include <span>

#include "engine/cache/kv_cache.hpp"
#include "engine/forward/step_plan.hpp"
#include "engine/forward/workspace.hpp"

namespace kvproof {

/// What one layer's attention reads: queries and new keys where the product left them, past keys where they are stored.
struct AttentionInput {
  const float* qkv = nullptr;  // [B, T, 3 * n_embd]: Q, K, V side by side
  KvView past;
  KvShape shape;
  float scale = 1.0F;
  std::size_t first_query = 0;  ///< only the new columns from here on are asked for
};

/// attended = softmax(scale * Q K^T) V for each head, over the keys that the plan lets each query see.
///
/// Shapes    attended [B, T - first_query, n_embd].
/// Numerics  a key that is not visible to a query is part of no sum of that query, whatever it holds; a query that sees no key
///           gets 0.
void attend(const StepPlan& plan, const AttentionInput& input, Workspace& workspace, std::span<float> attended) noexcept;

}  // namespace kvproof
