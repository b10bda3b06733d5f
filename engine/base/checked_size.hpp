#pragma once
#include <cstddef>
#include <optional>
#include <span>

namespace kvproof {

/// a * b, or nothing if the product does not fit a std::size_t.
[[nodiscard]] std::optional<std::size_t> checked_product(std::size_t a, std::size_t b) noexcept;

/// The product of all extents, or nothing on overflow. An empty shape is a scalar: 1.
[[nodiscard]] std::optional<std::size_t> checked_product(std::span<const std::size_t> extents) noexcept;

}  // namespace kvproof
