#include "harness/history/world.hpp"

#include <boost/test/unit_test.hpp>

#include <limits>

#include "engine/base/error.hpp"
#include "harness/history/world_fixture.hpp"

namespace {

using namespace kvproof::harness;
using kvproof::Rows;

std::string bits(const std::vector<std::uint8_t>& mask) {
  std::string text;
  for (const std::uint8_t bit : mask) text += std::to_string(bit);
  return text;
}

using List = std::vector<std::int64_t>;

BOOST_FIXTURE_TEST_SUITE(forward, Watched)

BOOST_AUTO_TEST_CASE(columns_are_counted_whatever_the_cut) {
  play(new_cache("a"));
  BOOST_TEST(play(feed("a", {{1, 2}})).length.value() == 2);
  BOOST_TEST(play(feed("a", {{3}})).length.value() == 3);
  BOOST_TEST(play(Length{"a"}).length.value() == 3);
  check_list(tokens(cache("a").rows[0]), {1, 2, 3});
  check_list(positions(cache("a").rows[0]), {0, 1, 2});
}

BOOST_AUTO_TEST_CASE(default_positions_count_pads_too) {
  play(new_cache("a"));
  play(feed("a", {{0, 2}}, Rows{{0, 1}}));
  play(feed("a", {{3}}, Rows{{0, 1, 1}}));
  check_list(positions(cache("a").rows[0]), {0, 1, 2});
}

BOOST_AUTO_TEST_CASE(explicit_positions_are_kept_and_the_next_default_is_the_column) {
  play(new_cache("a"));
  play(feed("a", {{0, 2}}, {}, Rows{{7, 7}}));
  play(feed("a", {{3}}));
  check_list(positions(cache("a").rows[0]), {7, 7, 2});
}

BOOST_AUTO_TEST_CASE(default_positions_go_on_from_the_length_after_crop_gather_clone_reset_and_load) {
  play(new_cache("a"));
  play(feed("a", {{1, 2, 3}, {4, 5, 6}}));
  play(Save{"a", "three"});
  play(Crop{"a", 1});
  play(Gather{"a", {1}});
  check_list(positions(play(feed("a", {{9}})).rows[0]), {0, 1});
  play(Clone{"b", "a"});
  check_list(positions(play(feed("b", {{9}})).rows[0]), {0, 1, 2});
  play(Reset{"b"});
  check_list(positions(play(feed("b", {{9}})).rows[0]), {0});
  play(Load{"b", "three"});
  check_list(positions(play(feed("b", {{7}, {8}})).rows[1]), {0, 1, 2, 3});
}

BOOST_AUTO_TEST_CASE(the_answer_has_the_columns_asked_for) {
  play(new_cache("a"));
  play(feed("a", {{1, 2}}));
  for (const auto& [logits, first, columns] : {std::tuple{"all", 2U, 3U}, {"last", 4U, 1U}, {"none", 5U, 0U}}) {
    Forward call = feed("a", {{3, 4, 5}});
    call.logits = logits;
    call.use_cache = false;
    const Outcome outcome = play(call);
    BOOST_TEST(outcome.first == first);
    BOOST_TEST(outcome.columns == columns);
    BOOST_TEST(outcome.rows[0].columns.size() == 5U);
  }
}

BOOST_AUTO_TEST_CASE(without_cache_it_is_a_full_pass_and_nothing_stays) {
  Forward call = feed(std::nullopt, {{1, 2}}, Rows{{0, 1}});
  const Outcome outcome = play(call);
  BOOST_TEST(!outcome.length.has_value());
  BOOST_TEST(!outcome.rows[0].window.has_value());
  call.use_cache = false;
  BOOST_TEST((play(call).rows[0].prefix_hashes() == outcome.rows[0].prefix_hashes()));
  BOOST_TEST(world.caches().empty());
}

BOOST_AUTO_TEST_CASE(read_only_answers_as_if_appended_and_changes_nothing) {
  play(new_cache("a", "static", 4));
  play(feed("a", {{1, 2}}, Rows{{1, 1}}));
  Forward call = feed("a", {{3}}, Rows{{0, 1, 1}});
  call.use_cache = false;
  const std::string before = described(world);
  const Outcome reading = play(call);
  BOOST_TEST(described(world) == before);
  BOOST_TEST(reading.length.value() == 2);
  call.use_cache = true;
  BOOST_TEST((play(call).rows[0].prefix_hashes() == reading.rows[0].prefix_hashes()));
}

BOOST_AUTO_TEST_CASE(read_only_on_an_empty_cache_fixes_no_batch_size) {
  play(new_cache("a", "static", 4));
  Forward call = feed("a", {{1}, {2}});
  call.use_cache = false;
  play(call);
  check_code(*this, feed("a", {{1}, {2}, {3}}), std::nullopt);
}

BOOST_AUTO_TEST_CASE(a_model_that_the_header_does_not_name_is_no_refusal_but_an_invalid_trace) {
  play(new_cache("a"));
  const std::string before = described(world);
  Forward with_cache = feed("a", {{1}}), unknown_cache = feed("x", {{1}}), without = feed(std::nullopt, {{}});
  with_cache.model = unknown_cache.model = without.model = "third";
  const Call calls[] = {new_cache("a", "?", {}, {}, "third"), with_cache, unknown_cache, without, Generate{.model = "third"}};
  for (const Call& call : calls) BOOST_CHECK_THROW(world.apply(call), kvproof::DataError);
  BOOST_TEST(described(world) == before);
  World no_main({{"other", two_models().at("main")}});
  BOOST_CHECK_THROW(no_main.apply(feed(std::nullopt, {{1}})), kvproof::DataError);
}

BOOST_AUTO_TEST_CASE(a_cache_is_checked_against_its_own_model) {
  play(new_cache("m", "dynamic", {}, {}, "second"));
  check_code(*this, feed("m", {{5}}), Code::token_range);
  check_code(*this, feed("m", {{1, 1, 1, 1, 1, 1, 1}}), Code::context_length);
  BOOST_TEST(play(feed("m", {{4}})).model == "second");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(mask, Watched)

BOOST_AUTO_TEST_CASE(what_a_call_hides_is_hidden_from_its_own_queries_and_later_ones_but_not_from_earlier_ones) {
  play(new_cache("a"));
  play(feed("a", {{1, 2, 3}}));
  play(feed("a", {{4, 5}}, Rows{{1, 0, 1, 1, 1}}));
  const RowHistory& row = cache("a").rows[0];
  BOOST_TEST(seen(row, 2) == "111");
  BOOST_TEST(seen(row, 3) == "1011");
  BOOST_TEST(seen(row, 4) == "10111");
  BOOST_TEST(!row.hidden(1));  // it was seen when it was fed: its logits counted
  BOOST_TEST(bits(cache("a").mask[0]) == "10111");
}

BOOST_AUTO_TEST_CASE(a_hidden_query_is_hidden_for_good) {
  play(new_cache("a"));
  const Outcome outcome = play(feed("a", {{1, 2, 3}}, Rows{{1, 0, 1}}));
  BOOST_TEST(outcome.rows[0].hidden(1));
  BOOST_TEST(seen(outcome.rows[0], 1) == "10");
  BOOST_TEST(!outcome.rows[0].hidden(2));
}

BOOST_AUTO_TEST_CASE(hiding_in_a_read_only_call_is_not_remembered) {
  play(new_cache("a"));
  play(feed("a", {{1, 2}}));
  Forward call = feed("a", {{3}}, Rows{{0, 0, 1}});
  call.use_cache = false;
  play(call);
  check_code(*this, feed("a", {{3}}), std::nullopt);
}

BOOST_AUTO_TEST_CASE(once_hidden_stays_hidden_until_the_column_is_cut_off) {
  play(new_cache("a"));
  play(feed("a", {{1, 2}}));
  play(feed("a", {{3}}, Rows{{1, 0, 1}}));
  check_code(*this, feed("a", {{4}}, Rows{{1, 1, 1, 1}}), Code::mask_revival);
  play(Crop{"a", 2});
  check_code(*this, feed("a", {{4}}), Code::mask_revival);
  play(Crop{"a", 1});
  check_code(*this, feed("a", {{4}}), std::nullopt);
}

BOOST_AUTO_TEST_CASE(a_crop_keeps_the_present_bits_not_those_of_the_time_of_feeding) {
  play(new_cache("a"));
  play(feed("a", {{1, 2, 3}}));
  play(feed("a", {{4}}, Rows{{0, 1, 1, 1}}));
  play(Crop{"a", 3});
  BOOST_TEST(bits(cache("a").mask[0]) == "011");
  BOOST_TEST(bits(play(Read{"a", 0}).present[0]) == "011");
}

BOOST_AUTO_TEST_CASE(present_bits_move_with_their_rows_and_travel_with_clone_save_and_load) {
  play(new_cache("a"));
  play(feed("a", {{1, 2}, {3, 4}}, Rows{{0, 1}, {1, 1}}));
  play(Gather{"a", {1, 0, 0}});
  play(Clone{"b", "a"});
  play(Save{"b", "s"});
  play(new_cache("c", "static", 9));
  play(Load{"c", "s"});
  for (const char* name : {"a", "b", "c"}) {
    BOOST_TEST(bits(cache(name).mask[0]) == "11");
    BOOST_TEST(bits(cache(name).mask[1]) == "01");
    BOOST_TEST(bits(cache(name).mask[2]) == "01");
    check_code(*this, feed(name, {{1}, {1}, {1}}, Rows{{1, 1, 1}, {0, 1, 1}, {1, 1, 1}}), Code::mask_revival);
    check_code(*this, feed(name, {{1}, {1}, {1}}, Rows{{1, 1, 1}, {0, 1, 1}, {0, 1, 1}}), std::nullopt);
  }
}

BOOST_AUTO_TEST_CASE(hiding_in_a_clone_hides_nothing_in_its_source) {
  play(new_cache("a"));
  play(feed("a", {{1, 2}}));
  play(Clone{"b", "a"});
  play(feed("b", {{3}}, Rows{{0, 1, 1}}));
  check_code(*this, feed("a", {{3}}), std::nullopt);
  BOOST_TEST(seen(cache("a").rows[0], 2) == "111");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(caches, Watched)

BOOST_AUTO_TEST_CASE(an_empty_cache_takes_any_batch_and_a_filled_one_only_its_own) {
  const std::pair<const char*, Call> kinds[] = {{"d", new_cache("d")}, {"s", new_cache("s", "static", 9)}, {"w", new_cache("w", "static_sliding_window", 9, 2)}};
  for (const auto& [name, call] : kinds) {
    play(call);
    play(feed(name, {{1}, {2}}));
    check_code(*this, feed(name, {{1}}), Code::batch_mismatch);
    play(Crop{name, 0});
    play(feed(name, {{1}, {2}, {3}}));
    play(Reset{name});
    play(feed(name, {{1}}));
  }
}

BOOST_AUTO_TEST_CASE(on_an_empty_cache_crop_to_zero_clone_save_reset_read_and_length_are_legal) {
  play(new_cache("a"));
  check_code(*this, Crop{"a", 0}, std::nullopt);
  check_code(*this, Crop{"a", 1}, Code::crop_range);
  check_code(*this, Gather{"a", {0}}, Code::row_range);
  check_code(*this, Clone{"b", "a"}, std::nullopt);
  check_code(*this, Save{"a", "s"}, std::nullopt);
  check_code(*this, Load{"c", "s"}, std::nullopt);
  check_code(*this, Reset{"a"}, std::nullopt);
  BOOST_TEST(play(Length{"c"}).length.value() == 0);
  const Outcome read = play(Read{"c", 0});
  BOOST_TEST(read.rows.empty());
  BOOST_TEST(read.columns == 0U);
}

BOOST_AUTO_TEST_CASE(rows_move_with_their_tokens_positions_and_masks) {
  play(new_cache("a"));
  play(feed("a", {{1, 2}, {3, 4}}, Rows{{0, 1}, {1, 1}}, Rows{{0, 0}, {5, 6}}));
  play(Gather{"a", {1, 1, 0}});
  const auto& rows = cache("a").rows;
  BOOST_REQUIRE(rows.size() == 3U);
  for (const std::size_t row : {0U, 1U}) {
    check_list(tokens(rows[row]), {3, 4});
    check_list(positions(rows[row]), {5, 6});
  }
  BOOST_TEST(seen(rows[2], 1) == "01");
  check_code(*this, feed("a", {{1}, {1}}), Code::batch_mismatch);
}

BOOST_AUTO_TEST_CASE(a_clone_and_its_source_go_their_own_ways) {
  play(new_cache("a"));
  play(feed("a", {{1}}));
  play(Clone{"b", "a"});
  play(Clone{"c", "b"});
  play(feed("a", {{2}}));
  play(feed("b", {{3}}));
  play(Drop{"a"});
  play(feed("c", {{4}}));
  check_list(tokens(cache("b").rows[0]), {1, 3});
  check_list(tokens(cache("c").rows[0]), {1, 4});
}

BOOST_AUTO_TEST_CASE(a_saved_copy_survives_what_happens_to_the_cache_and_loads_over_anything) {
  play(new_cache("a", "static", 3));
  play(feed("a", {{1, 2}}));
  play(Save{"a", "s"});
  play(feed("a", {{3}}));
  play(Drop{"a"});
  play(new_cache("other", "static_sliding_window", 5, 1, "second"));
  play(feed("other", {{4}, {4}}));
  play(Load{"other", "s"});
  BOOST_TEST(cache("other").kind == "static");
  BOOST_TEST(cache("other").model == "main");
  BOOST_TEST(cache("other").capacity.value() == 3U);
  BOOST_TEST(!cache("other").window.has_value());
  check_list(tokens(cache("other").rows[0]), {1, 2});
  play(feed("other", {{9}}));
  play(Load{"again", "s"});
  check_list(tokens(cache("again").rows[0]), {1, 2});
}

BOOST_AUTO_TEST_CASE(save_overwrites) {
  play(new_cache("a"));
  play(Save{"a", "s"});
  play(feed("a", {{1}}));
  play(Save{"a", "s"});
  play(Load{"b", "s"});
  BOOST_TEST(cache("b").length == 1U);
}

BOOST_AUTO_TEST_CASE(a_dropped_name_is_free_and_its_saved_copies_stay) {
  play(new_cache("a"));
  play(feed("a", {{1}}));
  play(Save{"a", "s"});
  play(Drop{"a"});
  play(new_cache("a", "static", 2));
  BOOST_TEST(cache("a").length == 0U);
  play(Load{"b", "s"});
  BOOST_TEST(cache("b").length == 1U);
}

BOOST_AUTO_TEST_CASE(a_read_speaks_of_all_columns_held_with_their_present_bits) {
  play(new_cache("w", "static_sliding_window", 9, 2));
  play(feed("w", {{1, 2, 3}}, Rows{{0, 1, 1}}));
  play(feed("w", {{4}}, Rows{{0, 1, 0, 1}}));
  const Outcome read = play(Read{"w", 1});
  BOOST_TEST(read.first == 2U);
  BOOST_TEST(read.columns == 2U);
  BOOST_TEST(bits(read.present[0]) == "0101");
  BOOST_TEST(read.length.value() == 4);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(generate, Watched)

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

std::optional<Code> generated(Watched& watched, std::optional<std::string> kind, std::optional<std::int64_t> capacity, std::int64_t n,
                              std::optional<Rows> mask = std::nullopt) {
  Generate call{.kind = std::move(kind), .capacity = capacity, .input_ids = {{1, 2, 3}}, .attention_mask = std::move(mask), .max_new_tokens = n};
  if (call.kind == "static_sliding_window") call.window = 2;
  return watched.code(call);
}

BOOST_AUTO_TEST_CASE(the_last_token_is_not_fed_so_the_exact_fit_is_one_more) {
  BOOST_TEST((generated(*this, std::nullopt, {}, 10) == std::nullopt));  // 3 + 10 - 1 = 12 = n_positions
  BOOST_TEST((generated(*this, std::nullopt, {}, 11) == Code::context_length));
  BOOST_TEST((generated(*this, "static", 7, 5) == std::nullopt));
  BOOST_TEST((generated(*this, "static", 7, 6) == Code::capacity));
  BOOST_TEST((generated(*this, "static", 2, 1) == Code::capacity));  // not even the prompt fits
  BOOST_TEST((generated(*this, "static", 3, 1) == std::nullopt));
}

BOOST_AUTO_TEST_CASE(the_greatest_number_of_tokens_overflows_nothing) {
  for (const char* kind : {"dynamic", "static", "static_sliding_window"})
    BOOST_TEST((generated(*this, kind, kind == std::string("dynamic") ? std::nullopt : std::optional(kHuge), kHuge) == Code::context_length));
}

BOOST_AUTO_TEST_CASE(a_capacity_never_bounds_a_sliding_cache) {
  BOOST_TEST((generated(*this, "static_sliding_window", 1, 10) == std::nullopt));
}

BOOST_AUTO_TEST_CASE(positions_come_from_the_mask_so_padding_leaves_room) {
  BOOST_TEST((generated(*this, std::nullopt, {}, 11, Rows{{0, 1, 1}}) == std::nullopt));  // last position 1
  BOOST_TEST((generated(*this, std::nullopt, {}, 12, Rows{{0, 1, 1}}) == Code::context_length));
  BOOST_TEST((generated(*this, "static", 12, 10, Rows{{0, 1, 1}}) == std::nullopt));
  BOOST_TEST((generated(*this, "static", 12, 11, Rows{{0, 1, 1}}) == Code::capacity));  // columns are counted, pads included
}

BOOST_AUTO_TEST_CASE(the_row_with_the_largest_position_decides) {
  const Call call = Generate{.input_ids = {{1, 2}, {3, 4}}, .attention_mask = Rows{{0, 1}, {1, 1}}, .max_new_tokens = 12};
  BOOST_TEST((code(call) == Code::context_length));
}

BOOST_AUTO_TEST_CASE(the_prompt_stands_in_the_histories_with_positions_of_its_mask_and_the_window_in_force) {
  const Outcome outcome = play(Generate{.kind = "static_sliding_window", .capacity = 2, .window = 5, .input_ids = {{1, 2, 3}, {4, 5, 6}},
                                        .attention_mask = Rows{{0, 0, 1}, {1, 0, 1}}, .max_new_tokens = 4});
  check_list(positions(outcome.rows[0]), {0, 0, 0});
  check_list(positions(outcome.rows[1]), {0, 0, 1});
  BOOST_TEST(outcome.rows[0].window.value() == 2U);
  BOOST_TEST(!outcome.length.has_value());
  BOOST_TEST(world.caches().empty());
}

BOOST_AUTO_TEST_CASE(a_prompt_of_more_columns_than_positions_is_fine_if_enough_of_them_are_hidden) {
  List ids(14, 1), mask(14, 0);
  mask.back() = 1;
  BOOST_TEST((code(Generate{.input_ids = {ids}, .attention_mask = Rows{mask}, .max_new_tokens = 12}) == std::nullopt));
  BOOST_TEST((code(Generate{.input_ids = {ids}, .max_new_tokens = 1}) == Code::context_length));
}

BOOST_AUTO_TEST_CASE(positions_of_a_mask_skip_what_is_hidden_and_are_never_negative) {
  check_list(positions_of_mask({0, 0, 1, 1, 0, 1}), {0, 0, 0, 1, 1, 2});
  BOOST_TEST(positions_of_mask({}).empty());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
