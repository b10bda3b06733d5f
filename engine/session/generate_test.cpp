#include <boost/test/unit_test.hpp>

#include "engine/session/test_support.hpp"

using namespace kvproof;
using namespace kvproof::testing;

namespace {

GenerateInput prompt(Rows input_ids, std::int64_t max_new_tokens, std::optional<CacheOptions> cache = std::nullopt) {
  GenerateInput input;
  input.cache = cache;
  input.input_ids = std::move(input_ids);
  input.max_new_tokens = max_new_tokens;
  return input;
}

std::int64_t best_of(std::span<const float> logits) { return std::ranges::max_element(logits) - logits.begin(); }

// Each id must be the best one of a full pass over the ids before it.
void check_greedy(const std::vector<std::int64_t>& prompt_ids, const std::vector<std::int64_t>& generated) {
  std::vector<std::int64_t> fed = prompt_ids;
  for (const std::int64_t id : generated) {
    ForwardInput input = call({fed});
    input.logits = LogitsWanted::last;
    const Logits logits = session().forward(nullptr, input);
    BOOST_TEST(best_of(logits.values) == id);
    fed.push_back(id);
  }
}

std::string code(const GenerateInput& input) {
  return refusal([&] { (void)session().generate(input); });
}

const Rows kRagged{{0, 0, 0, 7, 8}, {0, 3, 9, 1, 4}, {2, 6, 5, 5, 1}};
const Rows kRaggedMask{{0, 0, 0, 1, 1}, {0, 1, 1, 1, 1}, {1, 1, 1, 1, 1}};

}  // namespace

BOOST_AUTO_TEST_SUITE(generate)

BOOST_AUTO_TEST_CASE(each_id_is_the_best_one_for_the_ids_before_it) {
  const Rows ids = session().generate(prompt({{4, 9, 6}}, 10, CacheOptions{}));
  BOOST_TEST(ids.size() == 1U);
  BOOST_TEST(ids[0].size() == 10U);
  check_greedy({4, 9, 6}, ids[0]);
}

BOOST_AUTO_TEST_CASE(every_kind_of_cache_and_none_give_the_same_ids) {
  const Rows expected = session().generate(prompt(some_tokens(3, 4), 12));
  for (const auto& options : all_kinds()) BOOST_TEST((session().generate(prompt(some_tokens(3, 4), 12, options)) == expected));
}

BOOST_AUTO_TEST_CASE(a_ragged_left_padded_batch_gives_each_rows_own_ids) {
  GenerateInput input = prompt(kRagged, 8);
  input.attention_mask = kRaggedMask;
  const Rows expected = session().generate(input);
  for (std::size_t r = 0; r < 3; ++r) {
    std::vector<std::int64_t> alone;
    for (std::size_t c = 0; c < 5; ++c)
      if (kRaggedMask[r][c] == 1) alone.push_back(kRagged[r][c]);
    check_greedy(alone, expected[r]);
    BOOST_TEST((session().generate(prompt({alone}, 8, CacheOptions{})) == Rows{expected[r]}));
  }
  for (const auto& options : all_kinds()) {
    input.cache = options;
    BOOST_TEST((session().generate(input) == expected));
  }
}

BOOST_AUTO_TEST_CASE(a_narrow_window_gives_the_ids_of_a_banded_history) {
  const Rows ids = session().generate(prompt({{4, 9, 6, 1}}, 6, sliding(9, 2)));
  Rows fed{{4, 9, 6, 1}};
  for (const std::int64_t id : ids[0]) {
    Cache cache = session().make_cache(sliding(2, 2));
    const Logits logits = session().forward(&cache, call(fed));
    const auto last = row_of(logits, 0, fed[0].size() - 1);
    BOOST_TEST(best_of(last) == id);
    fed[0].push_back(id);
  }
}

BOOST_AUTO_TEST_CASE(a_row_is_filled_with_eos_once_it_has_ended_and_all_ended_rows_end_it) {
  const Rows free_running = session().generate(prompt(some_tokens(2, 4), 12));
  const std::int64_t eos = free_running[0][2];
  GenerateInput input = prompt(some_tokens(2, 4), 12, CacheOptions{});
  input.eos_token_id = eos;
  const Rows ids = session().generate(input);
  const auto end = [&](std::size_t r) { return static_cast<std::size_t>(std::ranges::find(free_running[r], eos) - free_running[r].begin()); };
  BOOST_TEST(ids[0].size() == std::min<std::size_t>(12, std::max(end(0), end(1)) + 1));
  for (std::size_t r = 0; r < 2; ++r)
    for (std::size_t i = 0; i < ids[r].size(); ++i) BOOST_TEST(ids[r][i] == (i <= end(r) ? free_running[r][i] : eos));
  input.input_ids = {input.input_ids[0]};
  BOOST_TEST(session().generate(input)[0].size() == end(0) + 1);
}

BOOST_AUTO_TEST_CASE(the_callback_sees_each_column_as_it_comes) {
  GenerateInput input = prompt(some_tokens(2, 3), 5, CacheOptions{});
  Rows seen(2);
  input.on_token = [&](std::span<const std::int64_t> ids) {
    for (std::size_t r = 0; r < ids.size(); ++r) seen[r].push_back(ids[r]);
  };
  BOOST_TEST((session().generate(input) == seen));
}

BOOST_AUTO_TEST_CASE(equal_logits_give_the_lowest_id) {
  const Session flat(make_flat_model());
  BOOST_TEST((flat.generate(prompt({{4, 9}}, 3)) == Rows{{0, 0, 0}}));
}

BOOST_AUTO_TEST_CASE(bad_argument_when_nothing_is_to_be_generated_or_the_cache_cannot_be_made) {
  BOOST_TEST(code(prompt({{1}}, 0)) == "bad_argument");
  BOOST_TEST(code(prompt({{1}}, -3)) == "bad_argument");
  BOOST_TEST(code(prompt({{1}}, 1, CacheOptions{CacheKind::fixed, {}, {}})) == "bad_argument");
  BOOST_TEST(code(prompt({{1}}, 1, CacheOptions{CacheKind::dynamic, 9, {}})) == "bad_argument");
}

BOOST_AUTO_TEST_CASE(mask_value_when_the_last_column_of_a_prompt_is_hidden) {
  GenerateInput input = prompt({{1, 2}, {3, 4}}, 2);
  input.attention_mask = Rows{{1, 1}, {1, 0}};
  BOOST_TEST(code(input) == "mask_value");
  input.attention_mask = Rows{{0, 1}, {1, 1}};
  BOOST_TEST(code(input) == "accepted");
}

BOOST_AUTO_TEST_CASE(context_length_is_refused_before_the_first_token_by_the_largest_position_that_will_be_fed) {
  bool called = false;
  GenerateInput input = prompt(some_tokens(1, 20), 13);  // 20 + 13 - 1 columns are the 32 positions
  BOOST_TEST(code(input) == "accepted");
  input.on_token = [&](auto) { called = true; };
  for (const std::int64_t more : {std::int64_t{14}, std::numeric_limits<std::int64_t>::max()}) {
    input.max_new_tokens = more;
    BOOST_TEST(code(input) == "context_length");
  }
  BOOST_TEST(!called);
  input.max_new_tokens = 14;
  input.attention_mask = Rows{std::vector<std::int64_t>(20, 1)};
  (*input.attention_mask)[0][0] = 0;  // one column more, no position more
  BOOST_TEST(code(input) == "accepted");
  BOOST_TEST(code(prompt(some_tokens(1, 33), 1)) == "context_length");
}

BOOST_AUTO_TEST_CASE(capacity_is_refused_before_the_first_token_for_a_static_cache_only) {
  BOOST_TEST(code(prompt(some_tokens(1, 5), 4, fixed(8))) == "accepted");
  BOOST_TEST(code(prompt(some_tokens(1, 5), 5, fixed(8))) == "capacity");
  BOOST_TEST(code(prompt(some_tokens(1, 5), 5, sliding(3, 8))) == "accepted");
}

BOOST_AUTO_TEST_CASE(the_other_refusals_of_a_forward_hold_for_the_prompt) {
  GenerateInput input = prompt({{1, 2}}, 2);
  input.input_ids = {};
  BOOST_TEST(code(input) == "empty_input");
  input.input_ids = {{1, 2}, {1}};
  BOOST_TEST(code(input) == "batch_mismatch");
  input.input_ids = {{1, 29}};
  BOOST_TEST(code(input) == "token_range");
  input.input_ids = {{1, 2}};
  input.attention_mask = Rows{{1}};
  BOOST_TEST(code(input) == "mask_length");
  input.attention_mask = Rows{{3, 1}};
  BOOST_TEST(code(input) == "mask_value");
}

BOOST_AUTO_TEST_SUITE_END()
