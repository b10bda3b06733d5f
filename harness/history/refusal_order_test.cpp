#include <boost/test/unit_test.hpp>

#include <limits>
#include <map>

#include "harness/history/world_fixture.hpp"

// The first code of the table that applies is the answer. For each op, each of its flaws is planted alone, then each pair of
// them together. Pairs that no call can have at once are listed with the reason.

namespace {

using namespace kvproof::harness;
using kvproof::Rows;

/// `dynamic` and `static` (capacity 4) hold three columns of two rows, the first of row 0 hidden.
struct Stage : Watched {
  Stage() {
    play(new_cache("dynamic"));
    play(new_cache("static", "static", 4));
    for (const char* name : {"dynamic", "static"}) play(feed(name, {{1, 2, 3}, {4, 5, 6}}, Rows{{0, 1, 1}, {1, 1, 1}}));
    play(new_cache("sliding", "static_sliding_window", 4, 2));
    play(feed("sliding", {{1, 2, 3, 4}}));
    play(new_cache("empty"));
  }
};

template <typename T>
using Flaws = std::vector<std::pair<Code, void (*)(T&)>>;  // in the order of the table

/// Plants each flaw alone, then each pair. The later flaw is planted first, since an earlier one may empty the arrays.
template <typename T>
std::size_t check_pairs(const Flaws<T>& flaws, const std::vector<std::pair<Code, Code>>& impossible, T (*good)(bool static_cache)) {
  std::size_t pairs = 0;
  for (std::size_t i = 0; i < flaws.size(); ++i)
    for (std::size_t j = i; j < flaws.size(); ++j) {
      if (std::ranges::find(impossible, std::pair(flaws[i].first, flaws[j].first)) != impossible.end()) continue;
      Stage stage;
      T call = good(flaws[i].first == Code::capacity || flaws[j].first == Code::capacity);
      flaws[j].second(call);
      if (i != j) flaws[i].second(call);
      BOOST_TEST_INFO("with " << code_name(flaws[j].first));
      check_code(stage, Call(call), flaws[i].first);
      pairs += i != j ? 1U : 0U;
    }
  return pairs;
}

Forward good_forward(bool static_cache) {
  return feed(static_cache ? "static" : "dynamic", {{1}, {2}}, Rows{{0, 1, 1, 1}, {1, 1, 1, 1}}, Rows{{2}, {3}});
}

void feed_more(Forward& call, std::size_t columns) {
  for (std::size_t b = 0; b < 2; ++b) {
    call.input_ids[b].insert(call.input_ids[b].end(), columns, 1);
    (*call.attention_mask)[b].insert((*call.attention_mask)[b].end(), columns, 1);
    if (call.position_ids) (*call.position_ids)[b].insert((*call.position_ids)[b].end(), columns, 1);
  }
}

const Flaws<Forward> kForwardFlaws = {
    {Code::unknown_cache, [](Forward& call) { call.cache = "nowhere"; }},
    {Code::model_mismatch, [](Forward& call) { call.model = "second"; }},
    {Code::bad_argument, [](Forward& call) { call.logits = "some"; }},
    {Code::empty_input, [](Forward& call) { call.input_ids = {{}, {}}; }},
    {Code::batch_mismatch, [](Forward& call) { call.attention_mask->push_back(call.attention_mask->back()); }},
    {Code::token_range, [](Forward& call) { call.input_ids[1][0] = 10; }},
    {Code::mask_length, [](Forward& call) { call.attention_mask->front().push_back(1); }},
    {Code::mask_value, [](Forward& call) { call.attention_mask->back().back() = 2; }},
    {Code::mask_revival, [](Forward& call) { call.attention_mask->front().front() = 1; }},
    {Code::position_shape, [](Forward& call) { call.position_ids->back().push_back(0); }},
    {Code::position_range, [](Forward& call) { call.position_ids->front().front() = -1; }},
    {Code::context_length, [](Forward& call) { call.position_ids.reset(); feed_more(call, 9); }},
    {Code::capacity, [](Forward& call) { feed_more(call, 1); }},
};

Generate good_generate(bool /*static_cache*/) {
  return {.kind = "static", .capacity = 4, .input_ids = {{1, 2}, {3, 4}}, .attention_mask = Rows{{0, 1}, {1, 1}}, .max_new_tokens = 2};
}

const Flaws<Generate> kGenerateFlaws = {
    {Code::bad_argument, [](Generate& call) { call.max_new_tokens = 0; }},
    {Code::empty_input, [](Generate& call) { call.input_ids = {{}, {}}; }},
    {Code::batch_mismatch, [](Generate& call) { call.attention_mask->push_back({1, 1}); }},
    {Code::token_range, [](Generate& call) { call.input_ids[1][0] = -1; }},
    {Code::mask_length, [](Generate& call) { call.attention_mask->front().insert(call.attention_mask->front().begin(), 1); }},
    {Code::mask_value, [](Generate& call) { call.attention_mask->back().back() = 0; }},
    {Code::context_length, [](Generate& call) { call.max_new_tokens = std::numeric_limits<std::int64_t>::max(); }},
    {Code::capacity, [](Generate& call) { if (call.max_new_tokens == 2) call.max_new_tokens = 4; }},
};

BOOST_AUTO_TEST_SUITE(refusal_order)

BOOST_AUTO_TEST_CASE(the_first_of_any_two_flaws_of_a_forward_applies) {
  const std::vector<std::pair<Code, Code>> impossible = {
      {Code::empty_input, Code::token_range},         // there is no token
      {Code::position_shape, Code::context_length},   // default positions have no shape
      {Code::position_range, Code::context_length},   // nor a wrong value
      {Code::empty_input, Code::capacity},            // P + 0 columns never pass a capacity that holds P
      {Code::empty_input, Code::context_length},      // likewise, for default positions
  };
  const std::size_t n = kForwardFlaws.size();
  BOOST_TEST(check_pairs(kForwardFlaws, impossible, good_forward) == n * (n - 1) / 2 - impossible.size());
}

BOOST_AUTO_TEST_CASE(the_first_of_any_two_flaws_of_a_generate_applies) {
  const std::vector<std::pair<Code, Code>> impossible = {
      {Code::bad_argument, Code::context_length}, {Code::bad_argument, Code::capacity},  // tested below with another bad argument
      {Code::empty_input, Code::token_range},
  };
  const std::size_t n = kGenerateFlaws.size();
  BOOST_TEST(check_pairs(kGenerateFlaws, impossible, good_generate) == n * (n - 1) / 2 - impossible.size());
}

BOOST_AUTO_TEST_CASE(bad_argument_comes_before_the_limits_of_a_generate) {
  Stage stage;
  Generate call = good_generate(true);
  call.window = 2;
  for (const std::int64_t n : {std::int64_t{4}, std::numeric_limits<std::int64_t>::max()}) {
    call.max_new_tokens = n;
    check_code(stage, call, Code::bad_argument);
  }
}

BOOST_AUTO_TEST_CASE(a_mask_value_comes_before_a_hidden_end_of_the_prompt_and_both_before_the_limits) {
  Stage stage;
  Generate call = good_generate(true);
  call.attention_mask = Rows{{1, 0}, {2, 1}};
  call.max_new_tokens = 4;
  check_code(stage, call, Code::mask_value);
  BOOST_TEST(stage.world.apply(call).refusal->message == "mask value 2 is neither 0 nor 1");
}

BOOST_AUTO_TEST_CASE(context_length_comes_before_capacity) {
  Stage stage;
  check_code(stage, Call(feed("static", {std::vector<std::int64_t>(10, 1), std::vector<std::int64_t>(10, 1)},
                                      Rows{{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, std::vector<std::int64_t>(13, 1)})), Code::context_length);
}

BOOST_AUTO_TEST_CASE(new_looks_at_the_name_before_the_arguments) {
  Stage stage;
  check_code(stage, new_cache("dynamic", "unknown"), Code::cache_exists);
}

BOOST_AUTO_TEST_CASE(clone_looks_for_the_source_before_the_new_name) {
  Stage stage;
  check_code(stage, Clone{"dynamic", "nowhere"}, Code::unknown_cache);
}

BOOST_AUTO_TEST_CASE(load_looks_only_at_the_saved_name) {
  Stage stage;
  check_code(stage, Load{"nowhere", "never"}, Code::name_unknown);
  check_code(stage, Load{"dynamic", "never"}, Code::name_unknown);
}

BOOST_AUTO_TEST_CASE(the_name_comes_before_layer_length_and_rows) {
  Stage stage;
  check_code(stage, Read{"nowhere", 9}, Code::unknown_cache);
  check_code(stage, Crop{"nowhere", -1}, Code::unknown_cache);
  check_code(stage, Gather{"nowhere", {-1}}, Code::unknown_cache);
}

// A length is out of range or between 0 and P, so crop_range and crop_evicted never meet; nor do the codes of different ops
// (name_unknown and bad_argument, bad_argument and layer_range, layer_range and empty_input, capacity and crop_range,
// crop_evicted and row_range). Their neighbours on the same op are tested above.
BOOST_AUTO_TEST_CASE(crop_out_of_range_is_never_evicted) {
  Stage stage;
  check_code(stage, Crop{"sliding", -1}, Code::crop_range);
  check_code(stage, Crop{"sliding", 5}, Code::crop_range);
  check_code(stage, Crop{"sliding", 1}, Code::crop_evicted);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
