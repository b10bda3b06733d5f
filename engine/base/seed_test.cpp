#include "engine/base/seed.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(seed)

// Test vectors: the FNV reference page, and the SplitMix64 reference stream for seed 1234567.
BOOST_AUTO_TEST_CASE(fnv1a_gives_the_published_values) {
  BOOST_TEST(kvproof::fnv1a("") == 0xcbf29ce484222325U);
  BOOST_TEST(kvproof::fnv1a("a") == 0xaf63dc4c8601ec8cU);
  BOOST_TEST(kvproof::fnv1a("foobar") == 0x85944171f73967e8U);
}

BOOST_AUTO_TEST_CASE(stream_gives_the_published_values) {
  kvproof::Random random(1234567);
  BOOST_TEST(random.next() == 6457827717110365317U);
  BOOST_TEST(random.next() == 3203168211198807973U);
  BOOST_TEST(random.next() == 9817491932198370423U);
}

BOOST_AUTO_TEST_CASE(between_reaches_both_ends_and_nothing_else) {
  kvproof::Random random(1);
  bool low = false, high = false;
  for (int i = 0; i < 200; ++i) {
    const auto value = random.between(-2, 2);
    BOOST_REQUIRE(value >= -2);
    BOOST_REQUIRE(value <= 2);
    low = low || value == -2;
    high = high || value == 2;
  }
  BOOST_TEST(low);
  BOOST_TEST(high);
}

BOOST_AUTO_TEST_CASE(signed_unit_is_symmetric_and_never_reaches_one) {
  BOOST_TEST(kvproof::signed_unit(0) == -kvproof::signed_unit(~std::uint64_t{0}));
  BOOST_TEST(kvproof::signed_unit(0) > -1.0);
  BOOST_TEST(kvproof::signed_unit(0) == -1.0 + 0x1p-52);
}

BOOST_AUTO_TEST_CASE(names_give_different_seeds) {
  BOOST_TEST(kvproof::derived_seed(1, "a") != kvproof::derived_seed(1, "b"));
  BOOST_TEST(kvproof::derived_seed(1, "a") != kvproof::derived_seed(2, "a"));
}

BOOST_AUTO_TEST_SUITE_END()
