#include "engine/base/error.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(error)

BOOST_AUTO_TEST_CASE(says_where_found_expected_and_next) {
  const kvproof::Error error({"a.json", "n_head is 3", "a divisor of n_embd 32", "Is the config of another model?"});
  BOOST_TEST(error.what() == "a.json: n_head is 3, expected a divisor of n_embd 32. Is the config of another model?");
}

BOOST_AUTO_TEST_CASE(leaves_out_what_is_not_known) {
  const kvproof::DataError error({"a.json", "the file is empty", "", ""});
  BOOST_TEST(error.what() == "a.json: the file is empty");
}

BOOST_AUTO_TEST_SUITE_END()
