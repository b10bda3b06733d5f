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
typedef double Doubles4 __attribute__((vector_size(32)));
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

/// The four sums of a, b, c and d: cheaper together than one by one.
KVPROOF_INLINE Lanes<4> sums_of(const Lanes16& a, const Lanes16& b, const Lanes16& c, const Lanes16& d) noexcept {
  const Lanes16 ab = __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29) +
                     __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  const Lanes16 cd = __builtin_shufflevector(c, d, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29) +
                     __builtin_shufflevector(c, d, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  const Lanes16 all = __builtin_shufflevector(ab, cd, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
                      __builtin_shufflevector(ab, cd, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  const Lanes<8> eight = __builtin_shufflevector(all, all, 0, 1, 2, 3, 4, 5, 6, 7) +
                         __builtin_shufflevector(all, all, 8, 9, 10, 11, 12, 13, 14, 15);
  return __builtin_shufflevector(eight, eight, 0, 1, 2, 3) + __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
}

/// The largest lane; a NaN may or may not win.
KVPROOF_INLINE float largest_of(const Lanes16& v) noexcept {
  const Lanes<8> low = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
  const Lanes<8> high = __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
  const Lanes<8> eight = low > high ? low : high;
  const Lanes<4> left = __builtin_shufflevector(eight, eight, 0, 1, 2, 3);
  const Lanes<4> right = __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
  const Lanes<4> four = left > right ? left : right;
  const float even = four[0] > four[2] ? four[0] : four[2];
  const float odd = four[1] > four[3] ? four[1] : four[3];
  return even > odd ? even : odd;
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
