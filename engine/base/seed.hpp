#pragma once
#include <cstdint>
#include <string_view>

namespace kvproof {

/// FNV-1a, 64 bits, of the bytes of `text`: the stable name hash of seeds.
[[nodiscard]] std::uint64_t fnv1a(std::string_view text) noexcept;

/// The finaliser of SplitMix64: a bijection that scatters every bit.
[[nodiscard]] std::uint64_t mix64(std::uint64_t value) noexcept;

/// The seed of the thing called `name` under `seed`: mix64(seed + fnv1a(name)). Never "the n-th draw of a shared generator".
[[nodiscard]] std::uint64_t derived_seed(std::uint64_t seed, std::string_view name) noexcept;

/// SplitMix64 as a stream: the same seed gives the same numbers on every machine and in every language.
///
/// Source    Steele, Lea, Flood 2014; docs/portable_generator.md. No std distribution is used anywhere: they are not portable.
class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

  [[nodiscard]] std::uint64_t next() noexcept;
  /// A number in [0, n); n must be > 0. next() % n: the bias is below n / 2^64.
  [[nodiscard]] std::uint64_t below(std::uint64_t n) noexcept { return next() % n; }
  /// A number in [low, high], both included.
  [[nodiscard]] std::int64_t between(std::int64_t low, std::int64_t high) noexcept;
  /// True with probability `percent` / 100.
  [[nodiscard]] bool chance(unsigned percent) noexcept { return below(100) < percent; }

 private:
  std::uint64_t state_;
};

/// A double in (-1, 1), exact in every language: (2k + 1) / 2^52 - 1 with k = the top 52 bits of `bits`.
[[nodiscard]] double signed_unit(std::uint64_t bits) noexcept;

}  // namespace kvproof
