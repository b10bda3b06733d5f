#include <cmath>
#include <limits>

#include "engine/kernels/instruction_set.hpp"
#include "engine/kernels/kernels.hpp"
#include "engine/kernels/lanes.hpp"

// Everything that is not a product: each function walks its values 16 at a time; the last few go through a padded copy.

namespace kvproof::kernels {
namespace {

/// The n < 16 floats at `from`, filled up with `padding`.
KVPROOF_INLINE Lanes16 load_some(const float* from, std::size_t n, float padding) noexcept {
  Lanes16 value = broadcast(padding);
  for (std::size_t i = 0; i < n; ++i) value[i] = from[i];
  return value;
}

KVPROOF_INLINE void store_some(const Lanes16& value, std::size_t n, float* to) noexcept {
  for (std::size_t i = 0; i < n; ++i) to[i] = value[i];
}

/// x / (1 + e^-2u), which is x * (1 + tanh u) / 2 without the cancellation for negative u.
struct GeluTanh {
  KVPROOF_INLINE Lanes16 of(const Lanes16& x) noexcept {
    constexpr float kMinusTwoRoot = -1.5957691216057308F;  // -2 * sqrt(2 / pi)
    const Lanes16 minus_2u = x * (x * x * 0.044715F + 1.0F) * kMinusTwoRoot;
    return x / (exp_of(minus_2u) + 1.0F);
  }
};

struct Silu {
  KVPROOF_INLINE Lanes16 of(const Lanes16& x) noexcept { return x / (exp_of(-x) + 1.0F); }
};

struct Relu {
  KVPROOF_INLINE Lanes16 of(const Lanes16& x) noexcept { return x < 0.0F ? Lanes16{} : x; }
};

/// Cephes: an odd polynomial near 0, where 1 - 2 / (e^2|x| + 1) would cancel.
struct Tanh {
  KVPROOF_INLINE Lanes16 of(const Lanes16& x) noexcept {
    const Lanes16 size = x < 0.0F ? -x : x;
    const Lanes16 far = 1.0F - 2.0F / (exp_of(size + size) + 1.0F);
    const Lanes16 z = x * x;
    Lanes16 p = z * -5.70498872745E-3F + 2.06390887954E-2F;
    p = p * z - 5.37397155531E-2F;
    p = p * z + 1.33314422036E-1F;
    p = p * z - 3.33332819422E-1F;
    return size < 0.625F ? p * z * x + x : (x < 0.0F ? -far : far);
  }
};

template <class Function>
struct Apply {
  template <InstructionSet>
  KVPROOF_INLINE void run(float* values, std::size_t n) noexcept {
    std::size_t i = 0;
    for (; i + 16 <= n; i += 16) store(Function::of(load<Lanes16>(values + i)), values + i);
    if (i < n) store_some(Function::of(load_some(values + i, n - i, 0.0F)), n - i, values + i);
  }
};

KVPROOF_INLINE Lanes16 larger(const Lanes16& a, const Lanes16& b) noexcept { return a > b ? a : b; }

/// `value` in the first n lanes, `padding` in the others.
KVPROOF_INLINE Lanes16 first_lanes(const Lanes16& value, std::size_t n, float padding) noexcept {
  constexpr Lanes16 kLane{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return kLane < static_cast<float>(n) ? value : broadcast(padding);
}

/// Whole vectors only: the floats behind the row are the row's own padding, and end up 0.
struct Softmax {
  static constexpr float kUnseen = -std::numeric_limits<float>::infinity();

  template <InstructionSet>
  KVPROOF_INLINE void run(float* scores, std::size_t n) noexcept {
    const std::size_t last = (n - 1) / 16 * 16;
    const Lanes16 end = first_lanes(load<Lanes16>(scores + last), n - last, kUnseen);
    Lanes16 best = end;
    for (std::size_t i = 0; i < last; i += 16) best = larger(load<Lanes16>(scores + i), best);
    const float largest = largest_of(best);
    if (largest == kUnseen) {
      for (std::size_t i = 0; i <= last; i += 16) store(Lanes16{}, scores + i);
      return;
    }
    const Lanes16 tail = exp_of(end - largest);
    Lanes16 sum = tail;
    for (std::size_t i = 0; i < last; i += 16) {
      const Lanes16 weight = exp_of(load<Lanes16>(scores + i) - largest);
      sum += weight;
      store(weight, scores + i);
    }
    const float inverse = 1.0F / sum_of(sum);
    for (std::size_t i = 0; i < last; i += 16) store(load<Lanes16>(scores + i) * inverse, scores + i);
    store(tail * inverse, scores + last);
  }
};

struct NormRow {
  KVPROOF_INLINE Doubles8 wide(const float* from) noexcept { return __builtin_convertvector(load<Lanes<8>>(from), Doubles8); }

  KVPROOF_INLINE double total(const Doubles8& v) noexcept {
    const Doubles4 four = __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
    return (four[0] + four[2]) + (four[1] + four[3]);
  }

  KVPROOF_INLINE double mean(const float* x, std::size_t n) noexcept {
    Doubles8 sum{};
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) sum += wide(x + i);
    double all = total(sum);
    for (; i < n; ++i) all += static_cast<double>(x[i]);
    return all / static_cast<double>(n);
  }

  KVPROOF_INLINE double variance(const float* x, std::size_t n, double centre) noexcept {
    Doubles8 sum{};
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
      const Doubles8 distance = wide(x + i) - centre;
      sum += distance * distance;
    }
    double all = total(sum);
    for (; i < n; ++i) all += (static_cast<double>(x[i]) - centre) * (static_cast<double>(x[i]) - centre);
    return all / static_cast<double>(n);
  }

  KVPROOF_INLINE void norm(const float* x, std::size_t n, const float* weight, const float* bias, double epsilon, float* y) noexcept {
    const double centre = mean(x, n);
    const double inverse = 1.0 / __builtin_sqrt(variance(x, n, centre) + epsilon);
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
      const auto unit = __builtin_convertvector((wide(x + i) - centre) * inverse, Lanes<8>);
      store(unit * load<Lanes<8>>(weight + i) + load<Lanes<8>>(bias + i), y + i);
    }
    for (; i < n; ++i) y[i] = static_cast<float>((static_cast<double>(x[i]) - centre) * inverse) * weight[i] + bias[i];
  }
};

struct NormRows {
  template <InstructionSet>
  KVPROOF_INLINE void run(std::span<const float> x, std::span<const float> weight, std::span<const float> bias, double epsilon,
                          std::span<float> y) noexcept {
    const std::size_t n = weight.size();
    for (std::size_t start = 0; start + n <= x.size(); start += n)
      NormRow::norm(x.data() + start, n, weight.data(), bias.data(), epsilon, y.data() + start);
  }
};

struct AddScaled {
  template <InstructionSet>
  KVPROOF_INLINE void run(float weight, const float* x, std::size_t n, float* sum) noexcept {
    for (std::size_t i = 0; i < n; ++i) sum[i] += weight * x[i];
  }
};

struct Add {
  template <InstructionSet>
  KVPROOF_INLINE void run(const float* a, const float* b, std::size_t n, float* y) noexcept {
    for (std::size_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
  }
};

}  // namespace

void layer_norm(std::span<const float> x, std::span<const float> weight, std::span<const float> bias, double epsilon,
                std::span<float> y) noexcept {
  run_widest<NormRows>(x, weight, bias, epsilon, y);
}

void gelu_tanh(std::span<float> values) noexcept { run_widest<Apply<GeluTanh>>(values.data(), values.size()); }

void gelu_erf(std::span<float> values) noexcept {
  for (float& x : values) x = x * 0.5F * std::erfc(x * -0.70710678F);
}

void relu(std::span<float> values) noexcept { run_widest<Apply<Relu>>(values.data(), values.size()); }

void silu(std::span<float> values) noexcept { run_widest<Apply<Silu>>(values.data(), values.size()); }

void tanh(std::span<float> values) noexcept { run_widest<Apply<Tanh>>(values.data(), values.size()); }

void softmax(std::span<float> scores) noexcept {
  if (!scores.empty()) run_widest<Softmax>(scores.data(), scores.size());
}

void add_scaled(float weight, std::span<const float> x, std::span<float> sum) noexcept {
  run_widest<AddScaled>(weight, x.data(), x.size(), sum.data());
}

void add(std::span<const float> a, std::span<const float> b, std::span<float> y) noexcept {
  run_widest<Add>(a.data(), b.data(), a.size(), y.data());
}

}  // namespace kvproof::kernels
