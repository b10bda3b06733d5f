#include "engine/base/seed.hpp"

namespace kvproof {

std::uint64_t fnv1a(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

std::uint64_t mix64(std::uint64_t value) noexcept {
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

std::uint64_t derived_seed(std::uint64_t seed, std::string_view name) noexcept { return mix64(seed + fnv1a(name)); }

std::uint64_t Random::next() noexcept {
  state_ += 0x9e3779b97f4a7c15U;
  return mix64(state_);
}

std::int64_t Random::between(std::int64_t low, std::int64_t high) noexcept {
  const auto width = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) + 1;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + below(width));
}

double signed_unit(std::uint64_t bits) noexcept {
  const auto odd = static_cast<std::int64_t>(2 * (bits >> 12U) + 1);
  return static_cast<double>(odd) / 4503599627370496.0 - 1.0;
}

}  // namespace kvproof
