#include "engine/weights/float16.hpp"

#include <boost/test/unit_test.hpp>

#include <bit>
#include <cmath>
#include <limits>

namespace {

// The value by the definition of an IEEE format: sign * 2^exponent * 1.fraction, with ldexp; shares nothing with the code under test.
double by_definition(std::uint16_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) return fraction != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

bool same(double a, double b) { return std::isnan(a) ? std::isnan(b) : std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

bool is_nan(double value) { return std::isnan(value); }

// The nearest pattern, ties to even, found by looking at both neighbours of every tie and of every value between two patterns.
template <class Widen, class Narrow>
void check_rounding(std::uint16_t first, std::uint16_t last, Widen widen, Narrow narrow) {
  for (std::uint16_t bits = first; bits < last; ++bits) {
    const auto next = static_cast<std::uint16_t>(bits + 1);
    const float low = widen(bits), high = widen(next);
    const auto middle = static_cast<float>((static_cast<double>(low) + static_cast<double>(high)) / 2);
    BOOST_REQUIRE(narrow(middle) == (bits % 2 == 0 ? bits : next));
    BOOST_REQUIRE(narrow(std::nextafter(middle, low)) == bits);
    BOOST_REQUIRE(narrow(std::nextafter(middle, high)) == next);
    BOOST_REQUIRE(narrow(-middle) == ((bits % 2 == 0 ? bits : next) | 0x8000));
  }
}

BOOST_AUTO_TEST_SUITE(float16)

BOOST_AUTO_TEST_CASE(every_f16_pattern_has_the_value_of_its_definition) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    BOOST_REQUIRE_MESSAGE(same(kvproof::float_from_f16(pattern), by_definition(pattern, 5, 10)), "pattern " << bits);
  }
}

BOOST_AUTO_TEST_CASE(every_bf16_pattern_has_the_value_of_its_definition) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    BOOST_REQUIRE_MESSAGE(same(kvproof::float_from_bf16(pattern), by_definition(pattern, 8, 7)), "pattern " << bits);
  }
}

BOOST_AUTO_TEST_CASE(every_pattern_survives_being_widened_and_narrowed) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    const float half = kvproof::float_from_f16(pattern), brain = kvproof::float_from_bf16(pattern);
    BOOST_REQUIRE(is_nan(half) ? is_nan(kvproof::float_from_f16(kvproof::f16_from_float(half))) : kvproof::f16_from_float(half) == pattern);
    BOOST_REQUIRE(is_nan(brain) ? is_nan(kvproof::float_from_bf16(kvproof::bf16_from_float(brain))) : kvproof::bf16_from_float(brain) == pattern);
  }
}

BOOST_AUTO_TEST_CASE(what_lies_between_two_f16_goes_to_the_nearer_and_a_tie_to_the_even) {
  check_rounding(0, 0x7bff, kvproof::float_from_f16, kvproof::f16_from_float);
}

BOOST_AUTO_TEST_CASE(what_lies_between_two_bf16_goes_to_the_nearer_and_a_tie_to_the_even) {
  check_rounding(0, 0x7f7f, kvproof::float_from_bf16, kvproof::bf16_from_float);
}

BOOST_AUTO_TEST_CASE(what_is_too_large_becomes_infinite_and_a_nan_stays_one) {
  BOOST_TEST(kvproof::f16_from_float(65519.0F) == 0x7bff);
  BOOST_TEST(kvproof::f16_from_float(65520.0F) == 0x7c00);
  BOOST_TEST(kvproof::f16_from_float(-1e30F) == 0xfc00);
  BOOST_TEST(kvproof::bf16_from_float(std::numeric_limits<float>::max()) == 0x7f80);
  BOOST_TEST(kvproof::bf16_from_float(-std::numeric_limits<float>::infinity()) == 0xff80);
  for (const std::uint32_t bits : {0x7f800001U, 0x7fffffffU, 0xffc00000U}) {  // a NaN whose upper fraction bits are all 0 among them
    BOOST_TEST(is_nan(kvproof::float_from_f16(kvproof::f16_from_float(std::bit_cast<float>(bits)))));
    BOOST_TEST(is_nan(kvproof::float_from_bf16(kvproof::bf16_from_float(std::bit_cast<float>(bits)))));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
