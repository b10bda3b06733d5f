#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/cache/kv_cache.hpp"

namespace kvproof {

/// What a new cache should be. Missing or surplus fields are refused as `bad_argument`.
struct CacheOptions {
  CacheKind kind = CacheKind::dynamic;
  std::optional<std::int64_t> capacity{};  ///< static kinds
  std::optional<std::int64_t> window{};    ///< sliding
};

/// The names outside C++: "dynamic", "static", "static_sliding_window".
[[nodiscard]] std::string_view cache_kind_name(CacheKind kind) noexcept;
[[nodiscard]] std::optional<CacheKind> cache_kind_from_name(std::string_view name) noexcept;

/// What is wrong with these options, in words; nothing if a cache can be made of them.
[[nodiscard]] std::optional<std::string_view> fault_of(const CacheOptions& options) noexcept;

/// An empty cache. Requires fault_of(options) is nothing. Cost: allocates no slots yet.
[[nodiscard]] std::unique_ptr<KvCache> make_kv_cache(const KvShape& shape, const CacheOptions& options);

}  // namespace kvproof
