#include "engine/session/past_mask.hpp"

#include <boost/test/unit_test.hpp>

using kvproof::PastMask;
using kvproof::Rows;

namespace {

using Bits = std::vector<std::uint8_t>;

PastMask taken(const Rows& mask) {
  PastMask past;
  past.reserve(mask.size(), mask[0].size());
  past.take(&mask, mask.size(), mask[0].size());
  return past;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(past_mask)

BOOST_AUTO_TEST_CASE(no_mask_appends_ones_and_leaves_the_past_alone) {
  PastMask past = taken({{0, 1}, {1, 1}});
  past.reserve(2, 3);
  past.take(nullptr, 2, 3);
  BOOST_TEST(past.bits() == (Bits{0, 1, 1, 1, 1, 1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_mask_replaces_the_past_bits) {
  PastMask past = taken({{1, 1}});
  const Rows mask{{0, 1, 0}};
  past.reserve(1, 3);
  past.take(&mask, 1, 3);
  BOOST_TEST(past.bits() == (Bits{0, 1, 0}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(reserve_changes_nothing_that_can_be_seen) {
  PastMask past;
  past.reserve(3, 100);
  BOOST_TEST(past.batch() == 0U);
  BOOST_TEST(past.length() == 0U);
  BOOST_TEST(past.bits().empty());
}

BOOST_AUTO_TEST_CASE(crop_keeps_the_first_columns_with_their_bits_and_0_forgets_the_batch) {
  PastMask past = taken({{0, 1, 1}, {1, 0, 1}});
  past.crop(2);
  BOOST_TEST(past.bits() == (Bits{0, 1, 1, 0}), boost::test_tools::per_element());
  past.crop(0);
  BOOST_TEST(past.batch() == 0U);
  past.reserve(1, 2);
  past.take(nullptr, 1, 2);
  BOOST_TEST(past.bits() == (Bits{1, 1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(gathered_rows_bring_their_bits) {
  const PastMask past = taken({{0, 1}, {1, 0}});
  const std::vector<std::size_t> rows{1, 1, 0};
  const PastMask result = past.gathered(rows, 8);
  BOOST_TEST(result.batch() == 3U);
  BOOST_TEST(result.bits() == (Bits{1, 0, 1, 0, 0, 1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
