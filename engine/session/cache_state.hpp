#pragma once
#include <memory>

#include "engine/session/model_identity.hpp"
#include "engine/session/past_mask.hpp"
#include "engine/session/session.hpp"

namespace kvproof {

/// What a forward call needs beside the model and the cache; reused from step to step.
struct Scratch {
  StepPlan plan;
  Workspace workspace;
};

/// Invariant: kv and mask agree on batch and length; mask bits outlive evicted columns.
struct Cache::State {
  std::shared_ptr<const ModelIdentity> owner;
  CacheOptions options;
  std::unique_ptr<KvCache> kv;
  PastMask mask;
  Scratch scratch{};
};

/// How many columns a step makes room for: a static cache's capacity at once, otherwise what the step needs.
[[nodiscard]] inline std::size_t columns_to_reserve(const KvCache& kv, std::size_t needed) noexcept {
  return kv.kind() == CacheKind::fixed ? *kv.capacity() : needed;
}

}  // namespace kvproof
