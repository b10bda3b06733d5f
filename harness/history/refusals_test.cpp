#include "harness/history/refusals.hpp"

#include <boost/test/unit_test.hpp>

#include <limits>

#include "harness/history/world_fixture.hpp"

// One case per code of the table, named after it. Which of two codes comes first is tested in refusal_order_test.cpp.

namespace {

using namespace kvproof::harness;
using kvproof::Rows;

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max(), kTiny = std::numeric_limits<std::int64_t>::min();

/// `d` holds three columns of two rows, the first of row 0 hidden; `s` the same with room for four; `w` five columns of one row
/// seen through a window of 2.
struct Filled : Watched {
  Filled() {
    play(new_cache("d"));
    play(feed("d", {{1, 2, 3}, {4, 5, 6}}, Rows{{0, 1, 1}, {1, 1, 1}}));
    play(new_cache("s", "static", 4));
    play(feed("s", {{1, 2, 3}, {4, 5, 6}}, Rows{{0, 1, 1}, {1, 1, 1}}));
    play(new_cache("w", "static_sliding_window", 3, 2));
    play(feed("w", {{1, 2, 3, 4, 5}}));
    play(Save{"d", "kept"});
  }
  static Forward next(std::string cache = "d") { return feed(std::move(cache), {{1}, {2}}, Rows{{0, 1, 1, 1}, {1, 1, 1, 1}}); }
};

BOOST_FIXTURE_TEST_SUITE(refusals, Filled)

BOOST_AUTO_TEST_CASE(the_calls_that_the_other_cases_spoil_are_accepted) {
  check_code(*this, next("d"), std::nullopt);
  check_code(*this, next("s"), std::nullopt);
}

BOOST_AUTO_TEST_CASE(unknown_cache) {
  const Call calls[] = {feed("x", {{1}}), Clone{"y", "x"}, Crop{"x", 0}, Gather{"x", {0}}, Reset{"x"}, Drop{"x"}, Length{"x"}, Read{"x", 0}, Save{"x", "n"}};
  for (const Call& call : calls) check_code(*this, call, Code::unknown_cache);
  play(Drop{"d"});
  check_code(*this, Length{"d"}, Code::unknown_cache);
  check_code(*this, Load{"x", "kept"}, std::nullopt);
}

BOOST_AUTO_TEST_CASE(model_mismatch) {
  Forward call = next();
  call.model = "second";
  check_code(*this, call, Code::model_mismatch);
  call.model = "main";
  check_code(*this, call, std::nullopt);
  play(new_cache("m", "dynamic", {}, {}, "second"));
  play(feed("m", {{1}}));
  play(Save{"m", "of_second"});
  play(Load{"d", "of_second"});
  play(Clone{"copy", "m"});
  for (const char* name : {"m", "d", "copy"}) {
    Forward other = feed(name, {{1}});
    other.model = "main";
    check_code(*this, other, Code::model_mismatch);
  }
}

BOOST_AUTO_TEST_CASE(cache_exists) {
  check_code(*this, new_cache("d"), Code::cache_exists);
  check_code(*this, Clone{"s", "d"}, Code::cache_exists);
  check_code(*this, Clone{"d", "d"}, Code::cache_exists);
}

BOOST_AUTO_TEST_CASE(name_unknown) {
  check_code(*this, Load{"d", "never"}, Code::name_unknown);
  check_code(*this, Load{"x", "d"}, Code::name_unknown);
}

BOOST_AUTO_TEST_CASE(bad_argument_of_new) {
  const Call calls[] = {new_cache("n", "Dynamic"), new_cache("n", ""), new_cache("n", "dynamic", 4), new_cache("n", "dynamic", {}, 4),
                        new_cache("n", "static"), new_cache("n", "static", 0), new_cache("n", "static", kTiny), new_cache("n", "static", 4, 2),
                        new_cache("n", "static_sliding_window", 4), new_cache("n", "static_sliding_window", {}, 4),
                        new_cache("n", "static_sliding_window", 0, 4), new_cache("n", "static_sliding_window", 4, 0)};
  for (const Call& call : calls) check_code(*this, call, Code::bad_argument);
  check_code(*this, new_cache("n", "static_sliding_window", 1, kHuge), std::nullopt);
}

BOOST_AUTO_TEST_CASE(bad_argument_of_forward) {
  for (const char* logits : {"", "All", "first"}) {
    Forward call = next();
    call.logits = logits;
    check_code(*this, call, Code::bad_argument);
  }
}

BOOST_AUTO_TEST_CASE(bad_argument_of_generate) {
  Generate good{.kind = "static", .capacity = 4, .input_ids = {{1}}, .max_new_tokens = 1};
  check_code(*this, good, std::nullopt);
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{-1}, kTiny}) {
    Generate call = good;
    call.max_new_tokens = n;
    check_code(*this, call, Code::bad_argument);
  }
  Generate no_kind = good, no_capacity = good, window = good, unknown = good;
  no_kind.kind.reset();
  no_capacity.capacity.reset();
  window.window = 2;
  unknown.kind = "none";
  for (const Generate& call : {no_kind, no_capacity, window, unknown}) check_code(*this, call, Code::bad_argument);
  no_kind.capacity.reset();
  no_kind.window = 2;
  check_code(*this, no_kind, Code::bad_argument);
}

BOOST_AUTO_TEST_CASE(layer_range) {
  for (const std::int64_t layer : {std::int64_t{-1}, std::int64_t{2}, kHuge, kTiny}) check_code(*this, Read{"d", layer}, Code::layer_range);
  check_code(*this, Read{"d", 1}, std::nullopt);
  play(new_cache("m", "dynamic", {}, {}, "second"));
  check_code(*this, Read{"m", 1}, Code::layer_range);  // an empty cache refuses too
}

BOOST_AUTO_TEST_CASE(empty_input) {
  for (const Rows& ids : {Rows{}, Rows{{}}, Rows{{}, {}}, Rows{{}, {}, {}}}) {
    check_code(*this, feed("d", ids), Code::empty_input);
    check_code(*this, feed(std::nullopt, ids), Code::empty_input);
    check_code(*this, Generate{.input_ids = ids, .max_new_tokens = 1}, Code::empty_input);
  }
}

BOOST_AUTO_TEST_CASE(batch_mismatch) {
  const Rows two = {{1}, {2}}, mask = {{0, 1, 1, 1}, {1, 1, 1, 1}};
  const Forward calls[] = {feed("d", {{1}, {}}, mask), feed("d", {{}, {1}}, mask), feed("d", {{1}, {2, 3}}, mask), feed("d", two, Rows{mask[0]}),
                           feed("d", two, Rows{}), feed("d", two, mask, Rows{{3}}), feed("d", two, mask, Rows{}), feed("d", {{1}}, Rows{mask[0]}),
                           feed("d", {{1}, {2}, {3}}), feed(std::nullopt, {{1}, {2, 3}}), feed(std::nullopt, {{1}}, Rows{{1}, {1}})};
  for (const Forward& call : calls) check_code(*this, call, Code::batch_mismatch);
  check_code(*this, Generate{.input_ids = {{1}, {2, 3}}, .max_new_tokens = 1}, Code::batch_mismatch);
  check_code(*this, Generate{.input_ids = two, .attention_mask = Rows{{1}}, .max_new_tokens = 1}, Code::batch_mismatch);
}

BOOST_AUTO_TEST_CASE(token_range) {
  for (const std::int64_t token : {std::int64_t{-1}, std::int64_t{10}, kHuge, kTiny}) {
    Forward call = next();
    call.input_ids[1][0] = token;
    check_code(*this, call, Code::token_range);
    check_code(*this, Generate{.input_ids = {{token}}, .max_new_tokens = 1}, Code::token_range);
  }
  check_code(*this, feed(std::nullopt, {{10, 1}}, Rows{{0, 1}}), Code::token_range);  // hidden columns too
  Forward edge = next();
  edge.input_ids = {{0}, {9}};
  check_code(*this, edge, std::nullopt);
}

BOOST_AUTO_TEST_CASE(mask_length) {
  for (const std::size_t length : {0U, 1U, 3U, 5U}) {
    Forward call = next();
    call.attention_mask = Rows(2, std::vector<std::int64_t>(length, 1));
    check_code(*this, call, Code::mask_length);
  }
  Forward ragged = next();
  ragged.attention_mask = Rows{{0, 1, 1, 1}, {1, 1, 1}};
  check_code(*this, ragged, Code::mask_length);
  check_code(*this, Generate{.input_ids = {{1, 2}}, .attention_mask = Rows{{1}}, .max_new_tokens = 1}, Code::mask_length);
}

BOOST_AUTO_TEST_CASE(mask_length_names_the_three_lengths_and_the_one_expected) {
  Forward call = next();
  call.attention_mask = Rows{{1}, {1}};
  BOOST_TEST(world.apply(call).refusal->message == "cache 3, new 1, mask 1, expected 4");
}

BOOST_AUTO_TEST_CASE(mask_value) {
  for (const std::int64_t bit : {std::int64_t{2}, std::int64_t{-1}, kHuge}) {
    Forward call = next();
    (*call.attention_mask)[0][0] = bit;
    check_code(*this, call, Code::mask_value);
    check_code(*this, Generate{.input_ids = {{1, 2}}, .attention_mask = Rows{{bit, 1}}, .max_new_tokens = 1}, Code::mask_value);
  }
}

BOOST_AUTO_TEST_CASE(mask_value_of_a_prompt_whose_last_column_is_hidden) {
  Generate call{.input_ids = {{1, 2}, {3, 4}}, .attention_mask = Rows{{0, 1}, {1, 0}}, .max_new_tokens = 1};
  check_code(*this, call, Code::mask_value);
  call.attention_mask = Rows{{0, 1}, {1, 1}};
  check_code(*this, call, std::nullopt);
}

BOOST_AUTO_TEST_CASE(mask_revival) {
  Forward revived = next();
  (*revived.attention_mask)[0][0] = 1;
  check_code(*this, revived, Code::mask_revival);
  check_code(*this, feed("d", {{1}, {2}}), Code::mask_revival);  // an absent mask is all ones
  revived.use_cache = false;
  check_code(*this, revived, Code::mask_revival);
}

BOOST_AUTO_TEST_CASE(mask_revival_of_an_evicted_column) {
  play(new_cache("p", "static_sliding_window", 2, 2));
  play(feed("p", {{1, 2, 3, 4, 5}}, Rows{{0, 1, 1, 1, 1}}));
  check_code(*this, feed("p", {{1}}), Code::mask_revival);
  check_code(*this, feed("p", {{1}}, Rows{{0, 1, 1, 1, 1, 1}}), std::nullopt);
}

BOOST_AUTO_TEST_CASE(position_shape) {
  for (const Rows& positions : {Rows{{3}, {3, 4}}, Rows{{}, {}}, Rows{{3}, {}}}) {
    Forward call = next();
    call.position_ids = positions;
    check_code(*this, call, Code::position_shape);
  }
}

BOOST_AUTO_TEST_CASE(position_range) {
  for (const std::int64_t position : {std::int64_t{-1}, std::int64_t{12}, kHuge, kTiny}) {
    Forward call = next();
    call.position_ids = Rows{{3}, {position}};
    check_code(*this, call, Code::position_range);
  }
  check_code(*this, feed(std::nullopt, {{1, 1}}, Rows{{0, 1}}, Rows{{12, 0}}), Code::position_range);  // hidden columns too
  Forward edge = next();
  edge.position_ids = Rows{{0}, {11}};
  check_code(*this, edge, std::nullopt);
}

BOOST_AUTO_TEST_CASE(context_length) {
  const Rows thirteen = {std::vector<std::int64_t>(13, 1)}, twelve = {std::vector<std::int64_t>(12, 1)};
  check_code(*this, feed(std::nullopt, thirteen), Code::context_length);
  check_code(*this, feed(std::nullopt, twelve), std::nullopt);
  play(new_cache("full"));
  play(feed("full", twelve));
  check_code(*this, feed("full", {{1}}), Code::context_length);
  // More columns than positions are fine as long as the positions are said.
  check_code(*this, feed("full", {{1}}, {}, Rows{{11}}), std::nullopt);
  check_code(*this, feed("full", {{1}}), Code::context_length);
}

BOOST_AUTO_TEST_CASE(capacity) {
  check_code(*this, feed("s", {{1, 1}, {1, 1}}, Rows{{0, 1, 1, 1, 1}, {1, 1, 1, 1, 1}}), Code::capacity);
  Forward reading = feed("s", {{1, 1}, {1, 1}}, Rows{{0, 1, 1, 1, 1}, {1, 1, 1, 1, 1}});
  reading.use_cache = false;
  check_code(*this, reading, Code::capacity);
  play(next("s"));
  check_code(*this, feed("s", {{1}, {1}}, Rows{{0, 1, 1, 1, 1}, {1, 1, 1, 1, 1}}), Code::capacity);
  check_code(*this, feed("w", {{1, 2, 3, 4}}), std::nullopt);  // never bounds a sliding cache
}

BOOST_AUTO_TEST_CASE(crop_range) {
  for (const std::int64_t length : {std::int64_t{-1}, std::int64_t{4}, kHuge, kTiny}) check_code(*this, Crop{"d", length}, Code::crop_range);
  for (const std::int64_t length : {3, 2, 0, 0}) check_code(*this, Crop{"d", length}, std::nullopt);
  check_code(*this, Crop{"d", 1}, Code::crop_range);
}

BOOST_AUTO_TEST_CASE(crop_evicted) {
  for (const std::int64_t length : {1, 2, 3}) check_code(*this, Crop{"w", length}, Code::crop_evicted);  // 0, 1, 2 are lost
  for (const std::int64_t length : {5, 4, 0}) check_code(*this, Crop{"w", length}, std::nullopt);
}

BOOST_AUTO_TEST_CASE(row_range) {
  for (const std::vector<std::int64_t>& rows : {std::vector<std::int64_t>{}, {2}, {0, 2}, {-1, 0}, {0, kHuge}, {kTiny, 0}})
    check_code(*this, Gather{"d", rows}, Code::row_range);
  for (const std::vector<std::int64_t>& rows : {std::vector<std::int64_t>{0}, {0, 1, 0}}) check_code(*this, Gather{"s", rows}, Code::row_range);
  check_code(*this, Gather{"w", {0, 0}}, Code::row_range);
  check_code(*this, Gather{"s", {1, 1}}, std::nullopt);
  check_code(*this, Gather{"d", {0, 1, 1}}, std::nullopt);
  play(Crop{"d", 0});
  check_code(*this, Gather{"d", {0}}, Code::row_range);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
