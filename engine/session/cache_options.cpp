#include "engine/session/cache_options.hpp"

#include <array>

namespace kvproof {
namespace {

constexpr std::array<std::string_view, 3> kKindNames{"dynamic", "static", "static_sliding_window"};

bool missing_or_below_one(const std::optional<std::int64_t>& number) noexcept { return !number || *number < 1; }

}  // namespace

std::string_view cache_kind_name(CacheKind kind) noexcept {
  const auto index = static_cast<std::size_t>(kind);
  return index < kKindNames.size() ? kKindNames[index] : std::string_view("unknown kind");
}

std::optional<CacheKind> cache_kind_from_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kKindNames.size(); ++i)
    if (kKindNames[i] == name) return static_cast<CacheKind>(i);
  return std::nullopt;
}

std::optional<std::string_view> fault_of(const CacheOptions& options) noexcept {
  switch (options.kind) {
    case CacheKind::dynamic:
      if (options.capacity) return "a dynamic cache has no capacity";
      break;
    case CacheKind::fixed:
    case CacheKind::sliding_window:
      if (missing_or_below_one(options.capacity)) return "a static cache needs a capacity of at least 1";
      break;
    default:
      return "no such kind of cache";
  }
  const bool sliding = options.kind == CacheKind::sliding_window;
  if (!sliding && options.window) return "only a sliding cache has a window";
  if (sliding && missing_or_below_one(options.window)) return "a sliding cache needs a window of at least 1";
  return std::nullopt;
}

std::unique_ptr<KvCache> make_kv_cache(const KvShape& shape, const CacheOptions& options) {
  const auto capacity = static_cast<std::size_t>(options.capacity.value_or(0));
  switch (options.kind) {
    case CacheKind::fixed:
      return make_static_cache(shape, capacity);
    case CacheKind::sliding_window:
      return make_static_sliding_window_cache(shape, capacity, static_cast<std::size_t>(options.window.value_or(0)));
    case CacheKind::dynamic:
      break;
  }
  return make_dynamic_cache(shape);
}

}  // namespace kvproof
