#include "engine/kernels/kernels.hpp"

#include <cblas.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/base/seed.hpp"
#include "engine/kernels/instruction_set.hpp"
#include "engine/kernels/loops.hpp"

using namespace kvproof;
using namespace kvproof::kernels;

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kUntouched = 12345.0F;

std::vector<float> random_floats(std::size_t n, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(signed_unit(random.next()));
  return values;
}

struct Sizes {
  std::size_t rows, in, out, gap;
};

/// Odd and even sizes, single rows and columns, both sides of the size from which OpenBLAS is called, gaps between rows.
const std::vector<Sizes>& sizes() {
  static const std::vector<Sizes> all{{1, 1, 1, 0},    {1, 7, 5, 3},      {2, 16, 16, 0},   {3, 17, 33, 2},   {4, 32, 96, 0},
                                      {5, 35, 105, 1}, {7, 64, 20, 64},   {1, 64, 1000, 0}, {6, 1, 64, 4},    {1, 300, 260, 0},
                                      {1, 300, 777, 5}, {2, 500, 257, 3}, {9, 128, 130, 6}, {64, 64, 64, 64}, {33, 100, 301, 0},
                                      {11, 600, 37, 2}, {3, 257, 15, 0}, {13, 5, 67, 1},
                                      {40, 200, 150, 6}, {1, 1100, 1000, 1}, {17, 300, 225, 0}, {16, 300, 257, 3}};
  return all;
}

/// How far a sum of n products of numbers below 1 may be from the exact one: n roundings of a sum below n, and much less in fact.
double sum_tolerance(std::size_t n) { return 1.2e-7 * (4 + std::sqrt(static_cast<double>(n))) * std::sqrt(static_cast<double>(n)); }

struct Product {
  explicit Product(const Sizes& sizes)
      : size(sizes),
        x(random_floats(size.rows * (size.in + size.gap), 1)),
        w(random_floats(size.in * (size.out + size.gap), 2)),
        m(random_floats(size.out * (size.in + size.gap), 3)),
        y(size.rows * (size.out + size.gap), kUntouched) {}

  [[nodiscard]] ConstMatrix x_view() const { return {x.data(), size.rows, size.in, size.in + size.gap}; }
  [[nodiscard]] ConstMatrix w_view() const { return {w.data(), size.in, size.out, size.out + size.gap}; }
  [[nodiscard]] ConstMatrix m_view() const { return {m.data(), size.out, size.in, size.in + size.gap}; }
  [[nodiscard]] Matrix y_view() { return {y.data(), size.rows, size.out, size.out + size.gap}; }

  [[nodiscard]] double entry(std::size_t row, std::size_t column, bool transposed) const {
    double sum = 0;
    for (std::size_t k = 0; k < size.in; ++k) {
      const float right = transposed ? m[column * (size.in + size.gap) + k] : w[k * (size.out + size.gap) + column];
      sum += static_cast<double>(x[row * (size.in + size.gap) + k]) * static_cast<double>(right);
    }
    return sum;
  }

  /// y must be base + scale * product, and what lies between its rows untouched.
  void check(double base, double scale, bool transposed) const {
    check(std::vector<float>(size.out, static_cast<float>(base)), scale, transposed);
  }

  /// The same with a base for each column.
  void check(const std::vector<float>& bases, double scale, bool transposed) const {
    for (std::size_t row = 0; row < size.rows; ++row) {
      const float* at = y.data() + row * (size.out + size.gap);
      for (std::size_t column = 0; column < size.out; ++column) {
        const auto base = static_cast<double>(bases[column]);
        const double want = base + scale * entry(row, column, transposed);
        BOOST_REQUIRE_SMALL(static_cast<double>(at[column]) - want, sum_tolerance(size.in) + 2.5e-7 * std::abs(base));
      }
      for (std::size_t i = size.out; i < size.out + size.gap; ++i) BOOST_REQUIRE(at[i] == kUntouched);
    }
  }

  void fill_result(float value) {
    for (std::size_t row = 0; row < size.rows; ++row)
      for (std::size_t column = 0; column < size.out; ++column) y[row * (size.out + size.gap) + column] = value;
  }

  Sizes size;
  std::vector<float> x, w, m, y;
};

using Function = void (*)(std::span<float>);

/// Compares with a formula in double on a grid of [-30, 30] and around 0.
void check_function(Function function, double (*formula)(double), double absolute, double relative) {
  std::vector<float> values;
  for (int i = -3000; i <= 3000; ++i) values.push_back(static_cast<float>(i) * 0.01F);
  for (int i = -50; i <= 50; ++i) values.push_back(static_cast<float>(i) * 1e-4F);
  const std::vector<float> x = values;
  function(values);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = formula(static_cast<double>(x[i]));
    BOOST_TEST_CONTEXT("x = " << x[i])
      BOOST_REQUIRE_SMALL(static_cast<double>(values[i]) - want, absolute + relative * std::abs(want));
  }
}

void check_nan_stays(Function function) {
  for (const std::size_t n : {1U, 16U, 19U}) {
    std::vector<float> values(n, 0.5F);
    values.back() = kNaN;
    function(values);
    BOOST_TEST(std::isnan(values.back()));
    if (n > 1) BOOST_TEST(!std::isnan(values.front()));
  }
}

/// Softmax of a row whose padding holds NaN: it must not matter, and become 0.
void softmax_padded(std::vector<float>& scores) {
  std::vector<float> row((scores.size() + kPadding - 1) / kPadding * kPadding, kNaN);
  std::ranges::copy(scores, row.begin());
  softmax({row.data(), scores.size()});
  std::copy_n(row.begin(), scores.size(), scores.begin());
  for (std::size_t i = scores.size(); i < row.size(); ++i) BOOST_REQUIRE(row[i] == 0.0F);
}

double gelu_tanh_formula(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x))); }
double gelu_fast_formula(double x) { return 0.5 * x * (1 + std::tanh(x * 0.7978845608 * (1 + 0.044715 * x * x))); }
double gelu_erf_formula(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double relu_formula(double x) { return x < 0 ? 0 : x; }
double silu_formula(double x) { return x / (1 + std::exp(-x)); }
double tanh_formula(double x) { return std::tanh(x); }

}  // namespace

BOOST_AUTO_TEST_SUITE(products)

BOOST_AUTO_TEST_CASE(multiply_equals_a_double_loop_and_writes_only_its_result) {
  for (const Sizes& size : sizes()) {
    BOOST_TEST_CONTEXT(size.rows << " x " << size.in << " x " << size.out << " gap " << size.gap) {
      Product product(size);
      multiply(product.x_view(), product.w_view(), product.y_view(), Into::overwrite);
      product.check(0, 1, false);
      product.fill_result(3.0F);
      multiply(product.x_view(), product.w_view(), product.y_view(), Into::add);
      product.check(3, 1, false);
    }
  }
}

BOOST_AUTO_TEST_CASE(multiply_transposed_equals_a_double_loop_and_writes_only_its_result) {
  for (const Sizes& size : sizes()) {
    BOOST_TEST_CONTEXT(size.rows << " x " << size.in << " x " << size.out << " gap " << size.gap) {
      Product product(size);
      multiply_transposed(product.x_view(), product.m_view(), 0.25F, product.y_view());
      product.check(0, 0.25, true);
    }
  }
}

BOOST_AUTO_TEST_CASE(our_loops_are_right_at_every_size) {
  for (const Sizes& size : sizes()) {
    BOOST_TEST_CONTEXT(size.rows << " x " << size.in << " x " << size.out << " gap " << size.gap) {
      Product product(size);
      multiply_by_loops(product.x_view(), product.w_view(), nullptr, product.y_view(), Into::overwrite);
      product.check(0, 1, false);
      product.fill_result(-2.0F);
      multiply_by_loops(product.x_view(), product.w_view(), nullptr, product.y_view(), Into::add);
      product.check(-2, 1, false);
      multiply_transposed_by_loops(product.x_view(), product.m_view(), 1.0F, product.y_view());
      product.check(0, 1, true);
    }
  }
}

BOOST_AUTO_TEST_CASE(an_old_nan_in_the_result_does_not_survive_an_overwrite) {
  for (const Sizes& size : sizes()) {
    Product product(size);
    product.fill_result(kNaN);
    multiply(product.x_view(), product.w_view(), product.y_view(), Into::overwrite);
    product.check(0, 1, false);
    product.fill_result(kNaN);
    multiply_transposed(product.x_view(), product.m_view(), 1.0F, product.y_view());
    product.check(0, 1, true);
  }
}

BOOST_AUTO_TEST_CASE(linear_adds_the_bias_to_each_row_and_can_add_to_what_is_there) {
  for (const Sizes& whole : sizes()) {
    Product product({whole.rows, whole.in, whole.out, 0});
    std::vector<float> bias = random_floats(whole.out, 4);
    linear(product.x, whole.rows, product.w, bias, product.y);
    product.check(bias, 1, false);
    product.fill_result(2.0F);
    linear(product.x, whole.rows, product.w, bias, product.y, Into::add);
    for (float& value : bias) value += 2.0F;
    product.check(bias, 1, false);
  }
}

BOOST_AUTO_TEST_CASE(thread_settings_of_the_program_stay_as_they_are) {
  const int found = openblas_get_num_threads();
  for (const int threads : {1, 2, found}) {
    openblas_set_num_threads(threads);
    const int set = openblas_get_num_threads();  // a serial library keeps one
    for (const std::size_t rows : {1U, 40U}) {
      Product product({rows, 1100, 1000, 0});
      multiply(product.x_view(), product.w_view(), product.y_view(), Into::overwrite);
      multiply_transposed(product.x_view(), product.m_view(), 1.0F, product.y_view());
    }
    BOOST_TEST(openblas_get_num_threads() == set);
  }
}

BOOST_AUTO_TEST_CASE(the_description_names_library_kernel_and_loops) {
  const std::string text = blas_description();
  BOOST_TEST_MESSAGE(text);
  BOOST_TEST(text.find("OpenBLAS") != std::string::npos);
  BOOST_TEST(text.find(openblas_get_corename()) != std::string::npos);
  BOOST_TEST(text.find(instruction_set_name(instruction_set())) != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(activations)

BOOST_AUTO_TEST_CASE(gelu_tanh_follows_its_formula) { check_function(gelu_tanh, gelu_tanh_formula, 1e-9, 6e-7); }
BOOST_AUTO_TEST_CASE(gelu_fast_is_the_same_formula) { check_function(gelu_tanh, gelu_fast_formula, 1e-9, 6e-7); }
BOOST_AUTO_TEST_CASE(gelu_erf_follows_its_formula) { check_function(gelu_erf, gelu_erf_formula, 1e-9, 6e-7); }
BOOST_AUTO_TEST_CASE(relu_follows_its_formula) { check_function(relu, relu_formula, 0, 1e-12); }
BOOST_AUTO_TEST_CASE(silu_follows_its_formula) { check_function(silu, silu_formula, 1e-9, 6e-7); }
BOOST_AUTO_TEST_CASE(tanh_follows_its_formula) { check_function(kernels::tanh, tanh_formula, 1e-10, 3e-7); }

BOOST_AUTO_TEST_CASE(nan_passes_through) {
  for (const Function function : {Function{gelu_tanh}, Function{gelu_erf}, Function{relu}, Function{silu}, Function{kernels::tanh}})
    check_nan_stays(function);
}

BOOST_AUTO_TEST_CASE(very_large_values_stay_finite) {
  for (const float size : {100.0F, 1e4F, 1e18F}) {
    for (const Function function : {Function{gelu_tanh}, Function{gelu_erf}, Function{relu}, Function{silu}, Function{kernels::tanh}}) {
      std::vector<float> values{size, -size};
      function(values);
      BOOST_TEST(std::isfinite(values[0]));
      BOOST_TEST(std::isfinite(values[1]));
      BOOST_TEST(std::abs(values[1]) <= 1.0F);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(rows)

BOOST_AUTO_TEST_CASE(softmax_equals_a_double_loop_at_every_length) {
  for (std::size_t n = 1; n <= 70; ++n) {
    std::vector<float> scores = random_floats(n, n);
    for (float& score : scores) score *= 20;
    std::vector<double> want;
    double sum = 0;
    for (const float score : scores) sum += want.emplace_back(std::exp(static_cast<double>(score)));
    softmax_padded(scores);
    // A difference of scores below 40 is rounded by up to 2e-6, and e^x turns that into a relative error.
    for (std::size_t i = 0; i < n; ++i) BOOST_REQUIRE_SMALL(static_cast<double>(scores[i]) - want[i] / sum, 2.5e-6 * want[i] / sum);
  }
}

BOOST_AUTO_TEST_CASE(an_unseen_key_weighs_exactly_nothing) {
  for (const std::size_t n : {2U, 16U, 40U}) {
    std::vector<float> scores(n, -kInfinity);
    scores[n / 2] = -1e30F;
    softmax_padded(scores);
    for (std::size_t i = 0; i < n; ++i) BOOST_TEST(scores[i] == (i == n / 2 ? 1.0F : 0.0F));
  }
}

BOOST_AUTO_TEST_CASE(if_no_key_is_seen_all_weights_are_zero) {
  for (const std::size_t n : {0U, 1U, 16U, 17U}) {
    std::vector<float> scores(n, -kInfinity);
    softmax_padded(scores);
    for (const float weight : scores) BOOST_TEST(weight == 0.0F);
  }
}

BOOST_AUTO_TEST_CASE(huge_scores_do_not_overflow) {
  std::vector<float> scores{3e38F, 3e38F, -3e38F};
  softmax_padded(scores);
  BOOST_TEST(scores == (std::vector<float>{0.5F, 0.5F, 0.0F}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(layer_norm_equals_a_double_loop_at_every_width) {
  for (const std::size_t n : {1U, 2U, 7U, 8U, 9U, 32U, 35U, 768U}) {
    std::vector<float> x = random_floats(3 * n, n), y(3 * n);
    for (float& value : x) value = value * 3 + 100;  // a mean far from 0 shows a sloppy variance
    const std::vector<float> weight = random_floats(n, 8), bias = random_floats(n, 9);
    layer_norm(x, weight, bias, 1e-5, y);
    for (std::size_t row = 0; row < 3; ++row) {
      double mean = 0, variance = 0;
      for (std::size_t i = 0; i < n; ++i) mean += static_cast<double>(x[row * n + i]) / static_cast<double>(n);
      for (std::size_t i = 0; i < n; ++i) variance += std::pow(static_cast<double>(x[row * n + i]) - mean, 2) / static_cast<double>(n);
      for (std::size_t i = 0; i < n; ++i) {
        const double want = (static_cast<double>(x[row * n + i]) - mean) / std::sqrt(variance + 1e-5) * static_cast<double>(weight[i]) +
                            static_cast<double>(bias[i]);
        BOOST_REQUIRE_SMALL(static_cast<double>(y[row * n + i]) - want, 1e-6);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(add_and_add_scaled_take_every_length) {
  for (std::size_t n = 0; n < 40; ++n) {
    const std::vector<float> a = random_floats(n, 1), b = random_floats(n, 2);
    std::vector<float> y(n), sum = b;
    add(a, b, y);
    add_scaled(0.5F, a, sum);
    for (std::size_t i = 0; i < n; ++i) {
      BOOST_TEST(y[i] == a[i] + b[i]);
      BOOST_REQUIRE_SMALL(static_cast<double>(sum[i]) - (0.5 * static_cast<double>(a[i]) + static_cast<double>(b[i])), 1e-7);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
