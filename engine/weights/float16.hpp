#pragma once
#include <cstdint>

namespace kvproof {

/// The value of an IEEE 754 binary16 (F16) or a bfloat16 (BF16) bit pattern, exactly; a NaN stays a NaN.
[[nodiscard]] float float_from_f16(std::uint16_t bits) noexcept;
[[nodiscard]] float float_from_bf16(std::uint16_t bits) noexcept;

/// The nearest F16 or BF16 bit pattern, ties to even; what is too large becomes infinite, and a NaN stays a (quiet) NaN.
[[nodiscard]] std::uint16_t f16_from_float(float value) noexcept;
[[nodiscard]] std::uint16_t bf16_from_float(float value) noexcept;

}  // namespace kvproof
