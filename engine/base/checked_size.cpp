#include "engine/base/checked_size.hpp"

#include <limits>

namespace kvproof {

std::optional<std::size_t> checked_product(std::size_t a, std::size_t b) noexcept {
  if (b != 0 && a > std::numeric_limits<std::size_t>::max() / b) return std::nullopt;
  return a * b;
}

std::optional<std::size_t> checked_product(std::span<const std::size_t> extents) noexcept {
  std::optional<std::size_t> product = 1;
  for (const std::size_t extent : extents) {
    product = checked_product(*product, extent);
    if (!product) return std::nullopt;
  }
  return product;
}

}  // namespace kvproof
