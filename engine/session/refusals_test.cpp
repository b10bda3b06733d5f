#include <boost/test/unit_test.hpp>

#include "engine/session/test_support.hpp"

// One named case for each code that the engine itself can answer; after each refusal the cache's whole state (save() holds
// everything) and the caller's arrays are compared bit for bit. unknown_cache, cache_exists and name_unknown concern names of
// caches, which a C++ caller does not have.

using namespace kvproof;
using namespace kvproof::testing;

namespace {

// A cache with 3 columns of 2 rows; column 0 of row 0 is hidden.
struct Used {
  explicit Used(const CacheOptions& options = {}) : cache(session().make_cache(options)) {
    session().forward(&cache, call({{0, 4, 9}, {6, 7, 2}}, {{0, 1, 1}, {1, 1, 1}}));
    saved = cache.save();
  }
  // The code of a forward; "changed" if the refusal left a trace.
  std::string forward(const ForwardInput& input) {
    const ForwardInput before = input;  // NOLINT(performance-unnecessary-copy-initialization): whether it was changed is asked
    Logits logits{1, 1, 2, {0.5F, 0.25F}};
    const std::string code = refusal([&] { session().forward_into(&cache, input, logits); });
    const bool same_input = before.input_ids == input.input_ids && before.attention_mask == input.attention_mask &&
                            before.position_ids == input.position_ids;
    const bool same_logits = logits.columns == 1 && logits.values == std::vector<float>{0.5F, 0.25F};
    return same_input && same_logits && unchanged() ? code : "changed";
  }
  [[nodiscard]] bool unchanged() const { return cache.save() == saved; }

  Cache cache;
  std::vector<std::byte> saved;
};

const Rows kGoodMask{{0, 1, 1, 1}, {1, 1, 1, 1}};

CacheOptions options(CacheKind kind, std::optional<std::int64_t> capacity, std::optional<std::int64_t> window) { return {kind, capacity, window}; }

std::string making(const CacheOptions& wanted) {
  return refusal([&] { (void)session().make_cache(wanted); });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(refusals)

BOOST_AUTO_TEST_CASE(a_legal_step_on_the_used_cache_is_accepted) {
  Used used;
  BOOST_TEST(refusal([&] { session().forward(&used.cache, call({{1}, {2}}, kGoodMask)); }) == "accepted");
  BOOST_TEST(used.cache.length() == 4U);
}

BOOST_AUTO_TEST_CASE(model_mismatch_when_the_cache_belongs_to_another_model) {
  Used used;
  const Session other(make_model(12));
  BOOST_TEST(refusal([&] { other.forward(&used.cache, call({{1}, {2}}, kGoodMask)); }) == "model_mismatch");
  BOOST_TEST(refusal([&] { (void)other.plan(&used.cache, call({{1}, {2}}, kGoodMask)); }) == "model_mismatch");
  BOOST_TEST(used.unchanged());
}

BOOST_AUTO_TEST_CASE(bad_argument_when_capacity_or_window_are_missing_surplus_or_below_one) {
  using enum CacheKind;
  for (const auto& wanted : {options(dynamic, 4, {}), options(dynamic, {}, 4), options(fixed, {}, {}), options(fixed, 0, {}),
                             options(fixed, -1, {}), options(fixed, 4, 4), options(sliding_window, 4, {}), options(sliding_window, {}, 4),
                             options(sliding_window, 0, 4), options(sliding_window, 4, 0), options(static_cast<CacheKind>(9), {}, {})})
    BOOST_TEST(making(wanted) == "bad_argument");
  for (const auto& wanted : {options(dynamic, {}, {}), options(fixed, 1, {}), options(sliding_window, 1, 1)})
    BOOST_TEST(making(wanted) == "accepted");
}

BOOST_AUTO_TEST_CASE(bad_argument_when_logits_are_none_of_the_three) {
  Used used;
  ForwardInput input = call({{1}, {2}}, kGoodMask);
  input.logits = static_cast<LogitsWanted>(7);
  BOOST_TEST(used.forward(input) == "bad_argument");
}

BOOST_AUTO_TEST_CASE(layer_range_when_read_names_a_layer_that_is_not_there) {
  Used used;
  for (const std::int64_t layer : {-1, 2, 99}) BOOST_TEST(refusal([&] { (void)used.cache.read(layer); }) == "layer_range");
  BOOST_TEST(refusal([&] { (void)used.cache.read(1); }) == "accepted");
}

BOOST_AUTO_TEST_CASE(empty_input_when_there_are_no_rows_or_every_row_is_empty) {
  Used used;
  BOOST_TEST(used.forward(call({})) == "empty_input");
  BOOST_TEST(used.forward(call({{}, {}})) == "empty_input");
  BOOST_TEST(refusal([&] { session().forward(nullptr, call({})); }) == "empty_input");
}

BOOST_AUTO_TEST_CASE(batch_mismatch_when_input_ids_are_ragged) {
  Used used;
  BOOST_TEST(used.forward(call({{1}, {2, 3}}, kGoodMask)) == "batch_mismatch");
  BOOST_TEST(used.forward(call({{}, {2}}, kGoodMask)) == "batch_mismatch");
}

BOOST_AUTO_TEST_CASE(batch_mismatch_when_mask_positions_or_cache_have_another_number_of_rows) {
  Used used;
  BOOST_TEST(used.forward(call({{1}, {2}}, {{0, 1, 1, 1}})) == "batch_mismatch");
  BOOST_TEST(used.forward(call({{1}, {2}}, kGoodMask, {{0}, {1}, {2}})) == "batch_mismatch");
  BOOST_TEST(used.forward(call({{1}}, {{0, 1, 1, 1}})) == "batch_mismatch");
}

BOOST_AUTO_TEST_CASE(token_range_when_an_id_is_negative_or_not_in_the_vocabulary) {
  Used used;
  BOOST_TEST(used.forward(call({{1}, {-1}}, kGoodMask)) == "token_range");
  BOOST_TEST(used.forward(call({{29}, {1}}, kGoodMask)) == "token_range");
  BOOST_TEST(used.forward(call({{28}, {std::numeric_limits<std::int64_t>::min()}}, kGoodMask)) == "token_range");
}

BOOST_AUTO_TEST_CASE(token_range_and_position_range_hold_for_hidden_columns_too) {
  Used used;
  BOOST_TEST(used.forward(call({{29}, {1}}, {{0, 1, 1, 0}, {1, 1, 1, 1}})) == "token_range");
  BOOST_TEST(used.forward(call({{1}, {1}}, {{0, 1, 1, 0}, {1, 1, 1, 1}}, {{32}, {0}})) == "position_range");
}

BOOST_AUTO_TEST_CASE(mask_length_names_the_three_lengths_and_the_one_expected) {
  Cache cache = session().make_cache({});
  session().forward(&cache, call({{4, 9, 6}}));
  BOOST_TEST(refusal([&] { session().forward(&cache, call({{7}}, {{1}})); }) == "mask_length");
  BOOST_TEST(refusal_text([&] { session().forward(&cache, call({{7}}, {{1}})); }) ==
             "forward: attention_mask row 0: cache 3, new 1, mask 1, expected 4");
}

BOOST_AUTO_TEST_CASE(mask_length_when_a_row_is_shorter_or_longer_than_cache_and_input) {
  Used used;
  for (const Rows& mask : {Rows{{1}, {1}}, Rows{{0, 1, 1}, {1, 1, 1}}, Rows{{0, 1, 1, 1, 1}, {1, 1, 1, 1, 1}}, Rows{{0, 1, 1, 1}, {}}})
    BOOST_TEST(used.forward(call({{1}, {2}}, mask)) == "mask_length");
}

BOOST_AUTO_TEST_CASE(mask_value_when_a_bit_is_neither_0_nor_1) {
  Used used;
  for (const std::int64_t value : {2, -1, 256}) BOOST_TEST(used.forward(call({{1}, {2}}, {{0, 1, 1, 1}, {1, 1, 1, value}})) == "mask_value");
}

BOOST_AUTO_TEST_CASE(mask_revival_when_a_hidden_column_is_shown_or_the_mask_is_left_out) {
  Used used;
  BOOST_TEST(used.forward(call({{1}, {2}}, {{1, 1, 1, 1}, {1, 1, 1, 1}})) == "mask_revival");
  BOOST_TEST(used.forward(call({{1}, {2}})) == "mask_revival");
}

BOOST_AUTO_TEST_CASE(mask_revival_counts_evicted_columns) {
  Cache cache = session().make_cache(sliding(2, 2));
  session().forward(&cache, call({{0, 4, 9, 6}}, {{0, 1, 1, 1}}));
  BOOST_TEST(cache.gone() == 2U);
  BOOST_TEST(refusal([&] { session().forward(&cache, call({{7}})); }) == "mask_revival");
  BOOST_TEST(refusal([&] { session().forward(&cache, call({{7}}, {{0, 1, 1, 1, 1}})); }) == "accepted");
}

BOOST_AUTO_TEST_CASE(position_shape_when_a_row_does_not_have_one_position_for_each_token) {
  Used used;
  for (const Rows& positions : {Rows{{0}, {}}, Rows{{0, 1}, {0}}, Rows{{0, 1, 2, 3}, {0, 1, 2, 3}}})
    BOOST_TEST(used.forward(call({{1}, {2}}, kGoodMask, positions)) == "position_shape");
}

BOOST_AUTO_TEST_CASE(position_range_when_a_position_is_negative_or_not_in_the_model) {
  Used used;
  for (const std::int64_t position : {-1, 32, 1000}) BOOST_TEST(used.forward(call({{1}, {2}}, kGoodMask, {{0}, {position}})) == "position_range");
}

BOOST_AUTO_TEST_CASE(context_length_when_default_positions_pass_the_model) {
  Cache cache = session().make_cache({});
  session().forward(&cache, call(some_tokens(1, 31)));
  BOOST_TEST(refusal([&] { session().forward(&cache, call({{1, 2}})); }) == "context_length");
  BOOST_TEST(cache.length() == 31U);
  BOOST_TEST(refusal([&] { session().forward(&cache, call({{1}})); }) == "accepted");
  BOOST_TEST(refusal([&] { session().forward(&cache, call({{1}})); }) == "context_length");
  ForwardInput explicit_position = call({{1}});
  explicit_position.position_ids = Rows{{31}};  // a history may be longer than n_positions in columns, never in positions
  BOOST_TEST(refusal([&] { session().forward(&cache, explicit_position); }) == "accepted");
  BOOST_TEST(cache.length() == 33U);
  BOOST_TEST(refusal([&] { session().forward(nullptr, call(some_tokens(1, 33))); }) == "context_length");
}

BOOST_AUTO_TEST_CASE(capacity_when_a_static_cache_is_full_and_also_for_a_read_only_call) {
  Used used(fixed(4));
  const Rows mask{{0, 1, 1, 1, 1}, {1, 1, 1, 1, 1}};
  ForwardInput input = call({{1, 2}, {3, 4}}, mask);
  BOOST_TEST(used.forward(input) == "capacity");
  input.use_cache = false;
  BOOST_TEST(used.forward(input) == "capacity");
  BOOST_TEST(refusal([&] { session().forward(&used.cache, call({{1}, {2}}, kGoodMask)); }) == "accepted");
}

BOOST_AUTO_TEST_CASE(capacity_never_bounds_a_sliding_cache) {
  Used used(sliding(2, 8));
  BOOST_TEST(refusal([&] { session().forward(&used.cache, call({{1}, {2}}, kGoodMask)); }) == "accepted");
}

BOOST_AUTO_TEST_CASE(crop_range_when_the_length_is_negative_or_more_than_there_is) {
  Used used;
  for (const std::int64_t length : {-1, 4, 99}) BOOST_TEST(refusal([&] { used.cache.crop(length); }) == "crop_range");
  BOOST_TEST(used.unchanged());
  Cache empty = session().make_cache({});
  BOOST_TEST(refusal([&] { empty.crop(1); }) == "crop_range");
  BOOST_TEST(refusal([&] { empty.crop(0); }) == "accepted");
}

BOOST_AUTO_TEST_CASE(crop_evicted_when_the_next_query_would_see_a_lost_column) {
  Used used(sliding(8, 2));  // gone = 1, length = 3
  BOOST_TEST(used.cache.gone() == 1U);
  BOOST_TEST(refusal([&] { used.cache.crop(1); }) == "crop_evicted");
  BOOST_TEST(used.unchanged());
  BOOST_TEST(refusal([&] { used.cache.crop(2); }) == "accepted");
  BOOST_TEST(refusal([&] { used.cache.crop(0); }) == "accepted");
  BOOST_TEST(used.cache.gone() == 0U);
}

BOOST_AUTO_TEST_CASE(row_range_when_gather_names_no_row_a_wrong_one_or_another_number_of_a_static_cache) {
  Used dynamic, fixed_rows(fixed(8)), ring(sliding(8, 2));
  const std::vector<std::int64_t> none, negative{0, -1}, beyond{2, 0}, one{1}, three{0, 1, 0}, swapped{1, 0};
  for (Used* used : {&dynamic, &fixed_rows, &ring}) {
    for (const auto* rows : {&none, &negative, &beyond}) BOOST_TEST(refusal([&] { used->cache.gather(*rows); }) == "row_range");
    for (const auto* rows : {&one, &three})
      BOOST_TEST(refusal([&] { used->cache.clone().gather(*rows); }) == (used == &dynamic ? "accepted" : "row_range"));
    BOOST_TEST(used->unchanged());
    BOOST_TEST(refusal([&] { used->cache.gather(swapped); }) == "accepted");
  }
  Cache empty = session().make_cache({});
  BOOST_TEST(refusal([&] { empty.gather(std::vector<std::int64_t>{0}); }) == "row_range");
}

BOOST_AUTO_TEST_CASE(codes_have_the_names_of_the_contract) {
  BOOST_TEST(refusal_code_name(RefusalCode::unknown_cache) == "unknown_cache");
  BOOST_TEST(refusal_code_name(RefusalCode::cache_exists) == "cache_exists");
  BOOST_TEST(refusal_code_name(RefusalCode::name_unknown) == "name_unknown");
  BOOST_TEST(refusal_code_name(RefusalCode::row_range) == "row_range");
  BOOST_TEST(refusal_code_name(static_cast<RefusalCode>(99)) == "unknown code");
}

BOOST_AUTO_TEST_SUITE_END()
