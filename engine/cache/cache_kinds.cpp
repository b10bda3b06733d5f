#include <algorithm>

#include "engine/cache/kv_cache.hpp"

// A kind is where a column lies, how many slots a history needs, and what a step leaves behind; the rest is KvCache.

namespace kvproof {
namespace {

class DynamicCache final : public KvCache {
 public:
  explicit DynamicCache(const KvShape& shape) noexcept : KvCache(shape) {}

  [[nodiscard]] CacheKind kind() const noexcept override { return CacheKind::dynamic; }
  [[nodiscard]] std::optional<std::size_t> capacity() const noexcept override { return std::nullopt; }
  [[nodiscard]] std::optional<std::size_t> window() const noexcept override { return std::nullopt; }
  [[nodiscard]] std::optional<std::size_t> window_in_force() const noexcept override { return std::nullopt; }
  [[nodiscard]] std::size_t slot(std::size_t column) const noexcept override { return column; }
  [[nodiscard]] std::unique_ptr<KvCache> clone() const override { return std::make_unique<DynamicCache>(*this); }

 protected:
  [[nodiscard]] std::size_t slots_for(std::size_t columns, std::size_t held) const noexcept override {
    constexpr std::size_t kFirst = 16;
    return columns <= held ? held : std::max({columns, 2 * held, kFirst});
  }
};

class StaticCache final : public KvCache {
 public:
  StaticCache(const KvShape& shape, std::size_t capacity) noexcept : KvCache(shape), capacity_(capacity) {}

  [[nodiscard]] CacheKind kind() const noexcept override { return CacheKind::fixed; }
  [[nodiscard]] std::optional<std::size_t> capacity() const noexcept override { return capacity_; }
  [[nodiscard]] std::optional<std::size_t> window() const noexcept override { return std::nullopt; }
  [[nodiscard]] std::optional<std::size_t> window_in_force() const noexcept override { return std::nullopt; }
  [[nodiscard]] std::size_t slot(std::size_t column) const noexcept override { return column; }
  [[nodiscard]] std::unique_ptr<KvCache> clone() const override { return std::make_unique<StaticCache>(*this); }

 protected:
  [[nodiscard]] std::size_t slots_for(std::size_t /*columns*/, std::size_t /*held*/) const noexcept override { return capacity_; }

 private:
  std::size_t capacity_;
};

class StaticSlidingWindowCache final : public KvCache {
 public:
  StaticSlidingWindowCache(const KvShape& shape, std::size_t capacity, std::size_t window) noexcept
      : KvCache(shape), capacity_(capacity), window_(window) {}

  [[nodiscard]] CacheKind kind() const noexcept override { return CacheKind::sliding_window; }
  [[nodiscard]] std::optional<std::size_t> capacity() const noexcept override { return capacity_; }
  [[nodiscard]] std::optional<std::size_t> window() const noexcept override { return window_; }
  [[nodiscard]] std::optional<std::size_t> window_in_force() const noexcept override { return ring(); }
  [[nodiscard]] std::size_t slot(std::size_t column) const noexcept override { return column % ring(); }
  [[nodiscard]] std::unique_ptr<KvCache> clone() const override { return std::make_unique<StaticSlidingWindowCache>(*this); }

 protected:
  [[nodiscard]] std::size_t slots_for(std::size_t /*columns*/, std::size_t /*held*/) const noexcept override { return ring(); }

 private:
  [[nodiscard]] std::size_t ring() const noexcept { return std::min(window_, capacity_); }

  std::size_t capacity_, window_;
};

}  // namespace

std::unique_ptr<KvCache> make_dynamic_cache(const KvShape& shape) { return std::make_unique<DynamicCache>(shape); }

std::unique_ptr<KvCache> make_static_cache(const KvShape& shape, std::size_t capacity) {
  return std::make_unique<StaticCache>(shape, capacity);
}

std::unique_ptr<KvCache> make_static_sliding_window_cache(const KvShape& shape, std::size_t capacity, std::size_t window) {
  return std::make_unique<StaticSlidingWindowCache>(shape, capacity, window);
}

}  // namespace kvproof
