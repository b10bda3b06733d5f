#include "engine/base/checked_size.hpp"

#include <boost/test/unit_test.hpp>
#include <limits>
#include <vector>

using kvproof::checked_product;

namespace {
constexpr std::size_t kMax = std::numeric_limits<std::size_t>::max();
}

BOOST_AUTO_TEST_SUITE(checked_size)

BOOST_AUTO_TEST_CASE(products_that_fit_are_exact) {
  BOOST_TEST(checked_product(6, 7).value() == 42U);
  BOOST_TEST(checked_product(kMax, 1).value() == kMax);
  BOOST_TEST(checked_product(kMax, 0).value() == 0U);
}

BOOST_AUTO_TEST_CASE(one_past_the_largest_size_is_nothing) {
  BOOST_TEST(!checked_product(kMax / 2 + 1, 2).has_value());
}

BOOST_AUTO_TEST_CASE(a_shape_overflows_even_if_a_later_extent_is_zero) {
  const std::vector<std::size_t> shape{kMax, 2, 0};
  BOOST_TEST(!checked_product(shape).has_value());
}

BOOST_AUTO_TEST_CASE(an_empty_shape_holds_one_element) {
  BOOST_TEST(checked_product(std::vector<std::size_t>{}).value() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
