#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <set>

#include "harness/history/world_fixture.hpp"

// Rule 5 (docs/contract.md) said a second time, column by column, with a set instead of a number, and compared over every short
// sequence of calls.

namespace {

using namespace kvproof::harness;
using kvproof::Rows;

/// The columns a sliding cache still holds, by number.
struct Held {
  std::size_t window = 1, length = 0;
  std::set<std::size_t> columns;

  void forward(std::size_t fresh) {
    for (std::size_t i = 0; i < fresh; ++i) columns.insert(length++);
    std::erase_if(columns, [this](std::size_t c) { return c + window < length; });
  }
  /// Could the next query, in column `at`, miss something it should see?
  [[nodiscard]] bool would_miss(std::size_t at) const {
    for (std::size_t c = 0; c < at; ++c)
      if (at - c < window && !columns.contains(c)) return true;
    return false;
  }
  [[nodiscard]] std::optional<Code> crop(std::size_t to) {
    if (to > length) return Code::crop_range;
    if (to != 0 && to != length && would_miss(to)) return Code::crop_evicted;
    std::erase_if(columns, [to](std::size_t c) { return c >= to; });
    length = to;
    return std::nullopt;
  }
};

struct Search {
  static constexpr std::size_t kLongest = 8;
  std::size_t sequences = 0, evicted = 0, with_loss = 0;

  void compare(Watched& watched, const Held& held) {
    const CacheState& cache = watched.cache("w");
    BOOST_REQUIRE(cache.length == held.length);
    BOOST_REQUIRE(cache.length - cache.gone == held.columns.size());
    if (!held.columns.empty()) BOOST_REQUIRE(*held.columns.begin() == cache.gone);
    const Outcome read = watched.play(Read{"w", 0});
    BOOST_REQUIRE(read.first == cache.gone);
    BOOST_REQUIRE(read.columns == held.columns.size());
    with_loss += cache.gone != 0 ? 1U : 0U;
  }

  void from(const Watched& watched, const Held& held, std::size_t depth) {
    ++sequences;
    if (depth == 0) return;
    for (std::size_t fresh = 1; fresh <= 3 && held.length + fresh <= kLongest; ++fresh) {
      Watched next = watched;
      Held want = held;
      next.play(feed("w", Rows(1, std::vector<std::int64_t>(fresh, 1))));
      want.forward(fresh);
      compare(next, want);
      from(next, want, depth - 1);
    }
    for (std::size_t to = 0; to <= held.length + 1; ++to) {
      Watched next = watched;
      Held want = held;
      const auto code = want.crop(to);
      const Outcome outcome = next.world.apply(Crop{"w", static_cast<std::int64_t>(to)});
      BOOST_REQUIRE((outcome.refusal ? std::optional(outcome.refusal->code) : std::nullopt) == code);
      evicted += code == Code::crop_evicted ? 1U : 0U;
      compare(next, want);
      if (!code) from(next, want, depth - 1);
    }
  }
};

BOOST_AUTO_TEST_SUITE(window)

BOOST_AUTO_TEST_CASE(every_short_sequence_of_forwards_and_crops_agrees_with_the_list_of_held_columns) {
  Search search;
  for (std::size_t window = 1; window <= 5; ++window) {
    Watched watched;
    watched.play(new_cache("w", "static_sliding_window", 5, static_cast<std::int64_t>(window)));
    search.from(watched, {window, 0, {}}, 5);
  }
  BOOST_TEST_MESSAGE(search.sequences << " sequences, " << search.evicted << " crops refused, " << search.with_loss << " states with lost columns");
  BOOST_TEST(search.sequences > 25'000U);
  BOOST_TEST(search.evicted > 3'000U);
  BOOST_TEST(search.with_loss > 15'000U);
}

BOOST_AUTO_TEST_CASE(the_window_in_force_is_the_smaller_of_window_and_capacity) {
  Watched watched;
  watched.play(new_cache("narrow", "static_sliding_window", 9, 2));
  watched.play(new_cache("small", "static_sliding_window", 3, 7));
  for (const char* name : {"narrow", "small"}) watched.play(feed(name, {{1, 2, 3, 4, 5}}));
  BOOST_TEST(watched.cache("narrow").window.value() == 2U);
  BOOST_TEST(watched.cache("narrow").gone == 3U);
  BOOST_TEST(watched.cache("small").window.value() == 3U);
  BOOST_TEST(watched.cache("small").gone == 2U);
}

BOOST_AUTO_TEST_CASE(a_query_sees_window_columns_itself_included) {
  Watched watched;
  watched.play(new_cache("w", "static_sliding_window", 9, 3));
  const Outcome outcome = watched.play(feed("w", {{1, 2, 3, 4, 5}}, Rows{{1, 1, 0, 1, 1}}));
  std::string seen;
  for (std::size_t c = 0; c < 5; ++c) seen += outcome.rows[0].visible(4, c) ? '1' : '0';
  BOOST_TEST(seen == "00011");  // 2 is inside the window and hidden
  BOOST_TEST(!outcome.rows[0].visible(3, 4));
}

BOOST_AUTO_TEST_CASE(a_window_of_one_lets_any_crop_through) {
  Watched watched;
  watched.play(new_cache("w", "static_sliding_window", 4, 1));
  watched.play(feed("w", {{1, 2, 3, 4}}));
  for (const std::int64_t length : {3, 2, 1}) check_code(watched, Crop{"w", length}, std::nullopt);
  BOOST_TEST(watched.cache("w").gone == 1U);
  BOOST_TEST(watched.play(Read{"w", 0}).columns == 0U);  // one column long, and nothing of it is held
  watched.play(feed("w", {{5}}));
  BOOST_TEST(watched.cache("w").gone == 1U);
}

BOOST_AUTO_TEST_CASE(hidden_columns_that_are_lost_forbid_a_crop_too) {
  Watched watched;
  watched.play(new_cache("w", "static_sliding_window", 4, 2));
  watched.play(feed("w", {{1, 2, 3, 4}}, Rows{{0, 0, 1, 1}}));
  check_code(watched, Crop{"w", 2}, Code::crop_evicted);
}

BOOST_AUTO_TEST_CASE(what_is_gone_travels_with_clone_gather_save_and_load) {
  Watched watched;
  watched.play(new_cache("w", "static_sliding_window", 4, 2));
  watched.play(feed("w", {{1, 2, 3, 4}, {1, 2, 3, 4}}));
  watched.play(Clone{"clone", "w"});
  watched.play(Save{"w", "s"});
  watched.play(Reset{"w"});
  BOOST_TEST(watched.cache("w").gone == 0U);
  watched.play(Load{"loaded", "s"});
  watched.play(Gather{"loaded", {1, 0}});
  for (const char* name : {"clone", "loaded"}) {
    BOOST_TEST(watched.cache(name).gone == 2U);
    check_code(watched, Crop{name, 2}, Code::crop_evicted);
  }
}

BOOST_AUTO_TEST_CASE(a_read_only_forward_loses_nothing) {
  Watched watched;
  watched.play(new_cache("w", "static_sliding_window", 4, 2));
  watched.play(feed("w", {{1, 2}}));
  Forward reading = feed("w", {{3, 4, 5}});
  reading.use_cache = false;
  const std::string before = described(watched.world);
  const Outcome outcome = watched.play(reading);
  BOOST_TEST(described(watched.world) == before);
  BOOST_TEST(outcome.rows[0].columns.size() == 5U);
  BOOST_TEST(outcome.rows[0].window.value() == 2U);
  BOOST_TEST(outcome.length.value() == 2);
}

BOOST_AUTO_TEST_CASE(a_crop_to_zero_forgets_what_was_gone) {
  Watched watched;
  watched.play(new_cache("w", "static_sliding_window", 4, 2));
  watched.play(feed("w", {{1, 2, 3, 4}}));
  watched.play(Crop{"w", 0});
  BOOST_TEST(watched.cache("w").gone == 0U);
  watched.play(feed("w", {{1, 2}, {3, 4}}));
  check_code(watched, Crop{"w", 1}, std::nullopt);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
