#include "harness/history/row_history.hpp"

#include <boost/test/unit_test.hpp>

#include <set>

#include "engine/base/error.hpp"
#include "harness/history/world_fixture.hpp"

namespace {

using namespace kvproof::harness;
using kvproof::Rows;
using List = std::vector<std::int64_t>;

// TR16
BOOST_FIXTURE_TEST_SUITE(limits, Watched)

BOOST_AUTO_TEST_CASE(a_history_longer_than_any_model_can_use_makes_the_trace_invalid) {
  play(new_cache("a"));
  const List longest(kLongestHistory, 1), positions(kLongestHistory, 0);
  BOOST_CHECK_THROW(world.apply(feed(std::nullopt, {List(kLongestHistory + 1, 1)})), kvproof::DataError);
  BOOST_CHECK_THROW(world.apply(Generate{.input_ids = {List(kLongestHistory + 1, 1)}, .max_new_tokens = 1}), kvproof::DataError);
  play(feed("a", {longest}, {}, Rows{positions}));
  const std::string before = described(world.caches().at("a"));
  BOOST_CHECK_THROW(world.apply(feed("a", {{1}}, {}, Rows{{0}})), kvproof::DataError);
  BOOST_TEST((described(world.caches().at("a")) == before));
}

BOOST_AUTO_TEST_CASE(a_few_calls_cannot_fill_the_memory) {
  play(new_cache("a"));
  play(feed("a", {List(10'000, 1)}, {}, Rows{List(10'000, 0)}));
  BOOST_CHECK_THROW(world.apply(Gather{"a", List(2'000, 0)}), kvproof::DataError);  // 20 million columns
  play(Gather{"a", List(100, 0)});  // a million
  play(Save{"a", "s"});
  std::size_t copies = 0;
  BOOST_CHECK_THROW(for (;; ++copies) play(Load{"c", "s"}), kvproof::DataError);  // each over the one before
  BOOST_TEST(copies == 14U);
  for (const Call& call : {Call(Save{"a", "t"}), Call(Clone{"d", "a"}), Call(Read{"a", 0})}) BOOST_CHECK_THROW(world.apply(call), kvproof::DataError);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(row_history, Watched)

RowHistory history(Watched& watched, const Forward& first, const Forward& second) {
  watched.world = World(two_models());
  watched.play(new_cache("a"));
  watched.play(first);
  return watched.play(second).rows[0];
}

BOOST_AUTO_TEST_CASE(a_prefix_has_the_hashes_of_the_shorter_history) {
  const RowHistory cut = history(*this, feed("a", {{1, 2}}), feed("a", {{3, 4}}));
  const RowHistory whole = play(feed(std::nullopt, {{1, 2, 3, 4}})).rows[0];
  const RowHistory part = play(feed(std::nullopt, {{1, 2, 3}})).rows[0];
  BOOST_TEST((cut.prefix_hashes() == whole.prefix_hashes()));
  for (std::size_t q = 0; q < 3; ++q) BOOST_TEST(part.prefix_hashes()[q] == whole.prefix_hashes()[q]);
}

BOOST_AUTO_TEST_CASE(a_token_a_position_a_mask_bit_and_a_window_each_change_the_hash) {
  const auto base = history(*this, feed("a", {{1, 2}}), feed("a", {{3}})).prefix_hashes();
  BOOST_TEST(history(*this, feed("a", {{1, 4}}), feed("a", {{3}})).prefix_hashes()[1] != base[1]);
  BOOST_TEST(history(*this, feed("a", {{1, 2}}, {}, Rows{{0, 2}}), feed("a", {{3}})).prefix_hashes()[2] != base[2]);
  BOOST_TEST(history(*this, feed("a", {{1, 2}}), feed("a", {{3}}, Rows{{0, 1, 1}})).prefix_hashes()[2] != base[2]);
  RowHistory windowed = history(*this, feed("a", {{1, 2}}), feed("a", {{3}}));
  windowed.window = 2;
  BOOST_TEST(windowed.prefix_hashes()[2] != base[2]);
}

BOOST_AUTO_TEST_CASE(hiding_later_leaves_the_hashes_of_earlier_columns) {
  const auto base = history(*this, feed("a", {{1, 2}}), feed("a", {{3}})).prefix_hashes();
  const auto hidden = history(*this, feed("a", {{1, 2}}), feed("a", {{3}}, Rows{{0, 1, 1}})).prefix_hashes();
  BOOST_TEST(hidden[0] == base[0]);
  BOOST_TEST(hidden[1] == base[1]);
  BOOST_TEST(hidden[2] != base[2]);
}

BOOST_AUTO_TEST_CASE(what_a_call_hides_to_the_right_of_a_column_does_not_touch_its_hash) {
  const auto base = history(*this, feed("a", {{1}}), feed("a", {{2, 3}})).prefix_hashes();
  const auto hidden = history(*this, feed("a", {{1}}), feed("a", {{2, 3}}, Rows{{1, 1, 0}})).prefix_hashes();
  BOOST_TEST(hidden[1] == base[1]);
  BOOST_TEST(hidden[2] != base[2]);
}

BOOST_AUTO_TEST_CASE(a_padded_row_means_the_same_as_the_row_alone_at_the_same_positions) {
  const RowHistory padded = play(feed(std::nullopt, {{9, 1, 7, 2, 3}}, Rows{{0, 1, 0, 1, 1}}, Rows{{0, 0, 5, 1, 2}})).rows[0];
  const RowHistory alone = play(feed(std::nullopt, {{1, 2, 3}})).rows[0];
  BOOST_TEST(padded.meaning_hashes()[1] == alone.meaning_hashes()[0]);
  BOOST_TEST(padded.meaning_hashes()[3] == alone.meaning_hashes()[1]);
  BOOST_TEST(padded.meaning_hashes()[4] == alone.meaning_hashes()[2]);
  const RowHistory shifted = play(feed(std::nullopt, {{9, 1, 7, 2, 3}}, Rows{{0, 1, 0, 1, 1}})).rows[0];
  BOOST_TEST(shifted.meaning_hashes()[4] != alone.meaning_hashes()[2]);
  BOOST_TEST(shifted.meaning_hashes(false)[4] == alone.meaning_hashes(false)[2]);
}

BOOST_AUTO_TEST_CASE(what_a_seen_column_saw_is_part_of_the_meaning) {
  // In both, the last column sees columns 1 and 2 only; but column 1 saw column 0 in the first.
  const RowHistory saw = history(*this, feed("a", {{1, 2}}), feed("a", {{3}}, Rows{{0, 1, 1}}));
  const RowHistory did_not = history(*this, feed("a", {{1, 2}}, Rows{{0, 1}}), feed("a", {{3}}, Rows{{0, 1, 1}}));
  BOOST_TEST(seen(saw, 2) == seen(did_not, 2));
  BOOST_TEST(saw.meaning_hashes()[2] != did_not.meaning_hashes()[2]);
}

BOOST_AUTO_TEST_CASE(columns_keep_their_origin_wherever_they_go_and_new_ones_get_a_new_one) {
  play(new_cache("a"));
  play(feed("a", {{1, 1}, {1, 1}}));
  play(Clone{"b", "a"});
  play(Gather{"b", {1, 1, 0}});
  const auto& from = cache("a").rows;
  const auto& to = cache("b").rows;
  BOOST_TEST(to[0].columns[1].origin == from[1].columns[1].origin);
  BOOST_TEST(to[1].columns[1].origin == from[1].columns[1].origin);
  BOOST_TEST(to[2].columns[0].origin == from[0].columns[0].origin);
  std::set<std::uint64_t> origins;
  for (const RowHistory& row : from)
    for (const Column& column : row.columns) origins.insert(column.origin);
  for (const RowHistory& row : play(feed("a", {{1}, {1}})).rows) origins.insert(row.columns.back().origin);
  BOOST_TEST(origins.size() == 6U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
