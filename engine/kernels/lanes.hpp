#pragma once
#include <cstddef>
#include <cstdint>

/// Vectors of floats in the compiler's own extension: one body for every instruction set (see instruction_set.hpp).
/// Everything here is always_inline, so that it is compiled for whoever calls it.
namespace kvproof::kernels {

template <std::size_t n>
struct LanesOf {
  typedef float Float __attribute__((vector_size(4 * n)));
  typedef std::uint32_t Bits __attribute__((vector_size(4 * n)));
};
template <std::size_t n>
using Lanes = typename LanesOf<n>::Float;
using Lanes16 = Lanes<16>;
using Bits16 = LanesOf<16>::Bits;
typedef double Doubles8 __attribute__((vector_size(64)));

#define KVPROOF_INLINE [[gnu::always_inline]] static inline

template <class Vector>
KVPROOF_INLINE Vector load(const float* from) noexcept {
  Vector value;
  __builtin_memcpy(&value, from, sizeof(Vector));
  return value;
}

template <class Vector>
KVPROOF_INLINE void store(const Vector& value, float* to) noexcept {
  __builtin_memcpy(to, &value, sizeof(Vector));
}

KVPROOF_INLINE float sum_of(const Lanes16& v) noexcept {
  const Lanes<8> eight = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                         __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
  const Lanes<4> four = __builtin_shufflevector(eight, eight, 0, 1, 2, 3) + __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
  return (four[0] + four[2]) + (four[1] + four[3]);
}

KVPROOF_INLINE float largest_of(const Lanes16& v) noexcept {
  float largest = v[0];
  for (std::size_t i = 1; i < 16; ++i) largest = v[i] > largest ? v[i] : largest;
  return largest;
}

KVPROOF_INLINE Lanes16 broadcast(float value) noexcept { return Lanes16{} + value; }

/// e^x to 1-2 units in the last place; 0 below -87.3, e^88 above 88, NaN stays NaN.
///
/// Source    Cody-Waite reduction and the polynomial of the Cephes library (Moshier).
KVPROOF_INLINE Lanes16 exp_of(const Lanes16& value) noexcept {
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer in the low bits
  const Lanes16 x = value > 88.0F ? broadcast(88.0F) : value;
  const Lanes16 shifted = x * 1.44269504F + kRound;
  const Lanes16 n = shifted - kRound;
  const Lanes16 r = (x - n * 0.693359375F) - n * -2.12194440e-4F;
  Lanes16 p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * (r * r) + r + 1.0F;
  const Bits16 exponent = (__builtin_bit_cast(Bits16, shifted) << 23U) + 0x3f800000U;  // wraps: unsigned
  const auto power = __builtin_bit_cast(Lanes16, exponent);
  return value < -87.3F ? Lanes16{} : p * power;
}

}  // namespace kvproof::kernels
