#pragma once
#include <span>

#include "engine/cache/kv_cache.hpp"

namespace kvproof::harness {

/// Keys and values of one layer, row and head where a cache keeps them, slot by slot: a fault may write what a user may only read.
struct StoredHead {
  float* keys = nullptr;
  float* values = nullptr;
  std::size_t head_dim = 0;

  [[nodiscard]] std::span<float> key(std::size_t slot) const { return {keys + slot * head_dim, head_dim}; }
  [[nodiscard]] std::span<float> value(std::size_t slot) const { return {values + slot * head_dim, head_dim}; }
};

/// Visits every layer, row and head of a cache, or of several of one shape and batch side by side. Borrowed until they change.
template <typename Visit, typename... Caches>
void each_stored_head(const Visit& visit, const KvCache& first, const Caches&... others) {
  const KvShape& shape = first.shape();
  const auto stored = [&](const KvView& view, std::size_t row, std::size_t head) {
    const std::size_t at = row * view.row_stride + head * view.head_stride;
    return StoredHead{const_cast<float*>(view.keys) + at, const_cast<float*>(view.values) + at, shape.head_dim};
  };
  for (std::size_t layer = 0; layer < shape.n_layer; ++layer)
    for (std::size_t row = 0; row < first.batch(); ++row)
      for (std::size_t head = 0; head < shape.n_head; ++head) visit(stored(first.view(layer), row, head), stored(others.view(layer), row, head)...);
}

}  // namespace kvproof::harness
