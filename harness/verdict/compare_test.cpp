#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>

#include "harness/verdict/compare.hpp"

namespace {

namespace kh = kvproof::harness;
using Flags = std::vector<std::uint8_t>;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Logits of one row and one column, so that only the numbers matter.
kh::Comparison one_row(const std::vector<double>& want, const std::vector<double>& got, const kh::Tolerance& tolerance = {}) {
  const kh::Tensor expected{{1, 1, want.size()}, want}, found{{1, 1, got.size()}, got};
  kh::Comparison comparison = kh::compare(kh::logits_layout(expected), expected, found, {1}, nullptr, tolerance);
  kh::compare_distributions(kh::logits_layout(expected), expected, found, {1}, nullptr, tolerance, comparison);
  return comparison;
}

BOOST_AUTO_TEST_SUITE(compare)

BOOST_AUTO_TEST_CASE(equal_numbers_pass_with_nothing_to_report) {
  const auto same = one_row({1, -2, 3}, {1, -2, 3});
  BOOST_TEST(same.failing == 0U);
  BOOST_TEST(same.rows == 1U);
  BOOST_TEST(same.elements == 3U);
  BOOST_TEST(same.worst == 0);
  BOOST_TEST(!same.first_failing);
}

BOOST_AUTO_TEST_CASE(the_bound_itself_passes_and_the_next_number_fails) {
  const kh::Tolerance tolerance{0.5, 0.25};  // of 2: 1
  BOOST_TEST(one_row({2}, {3}, tolerance).failing == 0U);
  BOOST_TEST(one_row({2}, {std::nextafter(3.0, 4.0)}, tolerance).failing == 1U);
  BOOST_TEST(one_row({2}, {1}, tolerance).failing == 0U);
  BOOST_TEST(one_row({2}, {1 - 1e-15}, tolerance).failing == 1U);
}

BOOST_AUTO_TEST_CASE(a_nan_fails_in_got_in_want_and_in_both) {
  const kh::Tolerance wide{1e300, 1};
  for (const auto& [want, got] : {std::pair{0.0, kNaN}, {kNaN, 0.0}, {kNaN, kNaN}}) {
    const auto comparison = one_row({want}, {got}, wide);
    BOOST_TEST(comparison.failing == 1U);
    BOOST_TEST(comparison.worst == kInfinity);
    BOOST_TEST(comparison.first_failing.has_value());
  }
}

BOOST_AUTO_TEST_CASE(an_infinity_fails_in_got_in_want_and_in_both) {
  for (const auto& [want, got] : {std::pair{0.0, kInfinity}, {kInfinity, 0.0}, {-kInfinity, 7.0}, {kInfinity, kInfinity}, {kInfinity, -kInfinity}}) {
    const auto comparison = one_row({want}, {got});
    BOOST_TEST(comparison.failing == 1U);
    BOOST_TEST(comparison.worst == kInfinity);
  }
}

BOOST_AUTO_TEST_CASE(noise_that_overflowed_excuses_nothing) {
  const kh::Tensor want{{1, 1, 2}, {1, 2}}, got{{1, 1, 2}, {1, 9}};
  for (const double overflowed : {kInfinity, kNaN}) {
    const kh::Tensor noise{{1, 1, 2}, {0, overflowed}};
    const auto comparison = kh::compare(kh::logits_layout(want), want, got, {1}, &noise, {1e-5, 1e-4, true});
    BOOST_TEST(comparison.failing == 1U);
    BOOST_TEST(comparison.worst == kInfinity);
  }
}

BOOST_AUTO_TEST_CASE(noise_widens_a_derived_bound_eightfold_and_no_other) {
  const kh::Tensor want{{1, 1, 1}, {0}}, got{{1, 1, 1}, {8}}, noise{{1, 1, 1}, {1}};
  BOOST_TEST(kh::compare(kh::logits_layout(want), want, got, {1}, &noise, {0, 0, true}).failing == 0U);
  BOOST_TEST(kh::compare(kh::logits_layout(want), want, got, {1}, &noise, {0, 0, false}).failing == 1U);
}

BOOST_AUTO_TEST_CASE(a_bound_of_zero_demands_the_same_number) {
  const kh::Tolerance exact{0, 0};
  BOOST_TEST(one_row({1}, {1}, exact).failing == 0U);
  BOOST_TEST(one_row({0.0}, {-0.0}, exact).failing == 0U);
  const auto off = one_row({1}, {std::nextafter(1.0, 2.0)}, exact);
  BOOST_TEST(off.failing == 1U);
  BOOST_TEST(off.worst == kInfinity);
}

BOOST_AUTO_TEST_CASE(rows_that_do_not_count_are_not_looked_at) {
  const kh::Tensor want{{2, 1, 2}, {1, 2, 3, 4}}, got{{2, 1, 2}, {kNaN, 9, 3, 4}};
  const auto comparison = kh::compare(kh::logits_layout(want), want, got, {0, 1}, nullptr, {});
  BOOST_TEST(comparison.rows == 1U);
  BOOST_TEST(comparison.failing == 0U);
}

BOOST_AUTO_TEST_CASE(where_nothing_counts_nothing_is_compared) {
  const kh::Tensor want{{1, 1, 2}, {1, 2}}, got{{1, 1, 2}, {9, 9}};
  const auto comparison = kh::compare(kh::logits_layout(want), want, got, {0}, nullptr, {});
  BOOST_TEST(comparison.rows == 0U);
  BOOST_TEST(!comparison.worst_place);
}

BOOST_AUTO_TEST_CASE(an_empty_tensor_compares_nothing) {
  const kh::Tensor empty{{0, 5, 0, 4}, {}};
  const auto comparison = kh::compare(kh::heads_layout(empty), empty, empty, {}, nullptr, {});
  BOOST_TEST(comparison.rows == 0U);
  BOOST_TEST(!kh::first_non_finite(kh::heads_layout(empty), empty));
}

BOOST_AUTO_TEST_CASE(the_first_failing_and_the_worst_are_named_with_both_values) {
  const kh::Tensor want{{2, 2, 2}, {0, 0, 0, 0, 0, 0, 0, 0}}, got{{2, 2, 2}, {0, 0, 0, 1, 5, 1, 0, 0}};
  const auto comparison = kh::compare(kh::logits_layout(want), want, got, {1, 1, 1, 1}, nullptr, {0.5, 0});
  BOOST_REQUIRE(comparison.first_failing.has_value());
  const kh::Place first = *comparison.first_failing, worst = *comparison.worst_place;
  BOOST_TEST(first.row == 0U);
  BOOST_TEST(first.column == 1U);
  BOOST_TEST(first.element == 1U);
  BOOST_TEST(first.got == 1);
  BOOST_TEST(first.bound == 0.5);
  BOOST_TEST(worst.row == 1U);
  BOOST_TEST(worst.column == 0U);
  BOOST_TEST(worst.got == 5);
  BOOST_TEST(comparison.worst == 10);
  BOOST_TEST(comparison.failing == 3U);
  BOOST_TEST(comparison.failing_in_first_row == 1U);
  BOOST_TEST(comparison.row_size == 2U);
  BOOST_TEST(comparison.sum_of_squares == 27);
}

BOOST_AUTO_TEST_CASE(sums_keep_the_first_failure_and_the_worst) {
  kh::Comparison sum = one_row({0, 0}, {0, 0});
  sum.add(one_row({0, 0}, {0, 1}));
  sum.add(one_row({0, 0}, {9, 0}));
  BOOST_TEST(sum.rows == 3U);
  BOOST_TEST(sum.failing == 2U);
  BOOST_TEST(sum.first_failing->got == 1);
  BOOST_TEST(sum.worst_place->got == 9);
  BOOST_TEST(sum.top1_rows == 3U);
  sum.add({});
  BOOST_TEST(sum.rows == 3U);
  BOOST_TEST(sum.worst_place->got == 9);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(layout)

BOOST_AUTO_TEST_CASE(a_column_of_heads_is_every_head_at_that_column) {
  const kh::Tensor keys{{2, 3, 4, 5}, std::vector<double>(2 * 3 * 4 * 5)};
  const kh::Layout layout = kh::heads_layout(keys);
  BOOST_TEST(layout.rows == 2U);
  BOOST_TEST(layout.columns == 4U);
  BOOST_TEST(layout.elements == 15U);
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t h = 0; h < 3; ++h)
      for (std::size_t s = 0; s < 4; ++s)
        for (std::size_t d = 0; d < 5; ++d) BOOST_TEST(layout.index(b, s, h * 5 + d) == ((b * 3 + h) * 4 + s) * 5 + d);
}

BOOST_AUTO_TEST_CASE(a_column_of_keys_is_compared_or_left_out_as_a_whole) {
  kh::Tensor want{{1, 2, 2, 1}, {1, 2, 3, 4}}, got = want;  // head 0: columns 1 2; head 1: columns 3 4
  got.values[1] = got.values[3] = 9;                        // column 1 of both heads
  BOOST_TEST(kh::compare(kh::heads_layout(want), want, got, {1, 0}, nullptr, {}).failing == 0U);
  BOOST_TEST(kh::compare(kh::heads_layout(want), want, got, {1, 1}, nullptr, {}).failing == 2U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(distributions)

BOOST_AUTO_TEST_CASE(the_same_logits_have_no_divergence_and_agree) {
  const auto same = one_row({1, 2, 3}, {1, 2, 3});
  BOOST_TEST(same.worst_kl == 0);
  BOOST_TEST(same.top1_rows == 1U);
  BOOST_TEST(same.top1_agree == 1U);
}

BOOST_AUTO_TEST_CASE(a_constant_added_to_a_row_has_no_divergence) { BOOST_TEST(one_row({1, 2, 3}, {101, 102, 103}).worst_kl < 1e-12); }

BOOST_AUTO_TEST_CASE(divergence_is_that_of_the_formula) {
  const double p = std::exp(1.0) / (std::exp(1.0) + 1), expected = p * std::log(p / 0.5) + (1 - p) * std::log((1 - p) / 0.5);
  BOOST_TEST(one_row({1, 0}, {0, 0}).worst_kl == expected, boost::test_tools::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(huge_logits_do_not_overflow) { BOOST_TEST(std::isfinite(one_row({1e4, 0}, {1e4, 1}).worst_kl)); }

BOOST_AUTO_TEST_CASE(a_nan_diverges_infinitely_and_agrees_with_nothing) {
  for (const auto& got : {std::vector<double>{kNaN, 0, 0}, {0, kNaN, 0}, {kNaN, kNaN, kNaN}}) {
    const auto comparison = one_row({3, 2, 1}, got);
    BOOST_TEST(comparison.worst_kl == kInfinity);
    BOOST_TEST(comparison.top1_rows == 1U);
    BOOST_TEST(comparison.top1_agree == 0U);
    BOOST_TEST(comparison.top1_undecidable == 0U);
  }
}

BOOST_AUTO_TEST_CASE(another_best_within_twice_the_bound_is_undecidable) {
  const kh::Tolerance tolerance{0.25, 0};
  const auto tie = one_row({2, 1.5, 0}, {1.75, 1.76, 0}, tolerance);
  BOOST_TEST(tie.top1_agree == 0U);
  BOOST_TEST(tie.top1_undecidable == 1U);
  const auto apart = one_row({2, 1.49, 0}, {1.75, 1.76, 0}, tolerance);
  BOOST_TEST(apart.top1_agree == 0U);
  BOOST_TEST(apart.top1_undecidable == 0U);
}

BOOST_AUTO_TEST_CASE(derived_noise_widens_the_tie_by_the_largest_of_the_row) {
  const kh::Tensor want{{1, 1, 2}, {2, 1}}, got{{1, 1, 2}, {0, 1}}, noise{{1, 1, 2}, {0, 0.0625}};
  for (const bool derived : {false, true}) {
    kh::Comparison comparison;
    kh::compare_distributions(kh::logits_layout(want), want, got, {1}, &noise, {0, 0, derived}, comparison);
    BOOST_TEST(comparison.top1_undecidable == (derived ? 1U : 0U));
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_CASE(the_first_number_that_is_not_finite_is_found_wherever_it_stands) {
  kh::Tensor tensor{{1, 2, 3}, {0, 0, 0, 0, kInfinity, kNaN}};
  const auto place = kh::first_non_finite(kh::logits_layout(tensor), tensor);
  BOOST_REQUIRE(place.has_value());
  BOOST_TEST(place->column == 1U);
  BOOST_TEST(place->element == 1U);
  tensor.values.assign(6, 1e308);
  BOOST_TEST(!kh::first_non_finite(kh::logits_layout(tensor), tensor));
}

}  // namespace
