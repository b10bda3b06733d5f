#include "engine/weights/float16.hpp"

#include <bit>

namespace kvproof {
namespace {

constexpr std::uint32_t kSign = 0x80000000U;
constexpr std::uint32_t kInfinity = 0x7f800000U;

// `bits` without its lowest `drop` bits, rounded to nearest, ties to even. A carry moves into the exponent, as it should.
std::uint32_t rounded(std::uint32_t bits, unsigned drop) noexcept {
  const std::uint32_t half = 1U << (drop - 1);
  const std::uint32_t odd = (bits >> drop) & 1U;
  return (bits + half - 1 + odd) >> drop;
}

}  // namespace

float float_from_bf16(std::uint16_t bits) noexcept { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U); }

float float_from_f16(std::uint16_t bits) noexcept {
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (bits >> 10U) & 0x1fU;
  const std::uint32_t fraction = bits & 0x3ffU;
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24, exact in float
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + 127 - 15;
  return std::bit_cast<float>(sign | (wide << 23U) | (fraction << 13U));
}

std::uint16_t bf16_from_float(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & ~kSign) > kInfinity) return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  return static_cast<std::uint16_t>(rounded(bits, 16));
}

std::uint16_t f16_from_float(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits & kSign) >> 16U);
  const std::uint32_t magnitude = bits & ~kSign;
  if (magnitude > kInfinity) return static_cast<std::uint16_t>(sign | 0x7e00U);
  if (magnitude >= 0x47800000U) return static_cast<std::uint16_t>(sign | 0x7c00U);  // 65536 and more
  const std::uint32_t exponent = magnitude >> 23U;
  if (exponent < 102) return sign;  // below half of the smallest subnormal, 2^-25
  if (exponent < 113) {             // subnormal: count units of 2^-24
    const std::uint32_t fraction = (magnitude & 0x7fffffU) | 0x800000U;
    return static_cast<std::uint16_t>(sign | rounded(fraction, 126 - exponent));
  }
  return static_cast<std::uint16_t>(sign | rounded(magnitude - (112U << 23U), 13));
}

}  // namespace kvproof
