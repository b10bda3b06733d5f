#include <boost/test/unit_test.hpp>

#include "engine/session/test_support.hpp"

// The promise itself: whatever calls led to a cache, its logits are those of one full pass over its history.

using namespace kvproof;
using namespace kvproof::testing;

namespace {

// Feeds `tokens` in the given pieces, with the mask's columns so far at each step; logits of all columns put together.
Logits in_pieces(Cache& cache, const Rows& tokens, const Rows& mask, const std::vector<std::size_t>& pieces, bool positions_of_mask = false) {
  const std::size_t rows = tokens.size(), columns = tokens[0].size(), vocab = session().model().config().vocab_size;
  Logits all{rows, columns, vocab, std::vector<float>(rows * columns * vocab)};
  std::size_t begin = 0;
  for (const std::size_t piece : pieces) {
    ForwardInput input = call(columns_of(tokens, begin, begin + piece), columns_of(mask, 0, begin + piece));
    if (positions_of_mask) input.position_ids = positions_from_mask(*input.attention_mask, piece);
    const Logits part = session().forward(&cache, input);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t t = 0; t < piece; ++t)
        std::ranges::copy(row_of(part, r, t), all.values.begin() + static_cast<std::ptrdiff_t>((r * columns + begin + t) * vocab));
    begin += piece;
  }
  return all;
}

Rows ones(std::size_t rows, std::size_t columns) { return Rows(rows, std::vector<std::int64_t>(columns, 1)); }

const std::vector<std::vector<std::size_t>> kCuttings{{9}, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {3, 1, 5}, {2, 7}, {8, 1}, {4, 3, 2}};

// Each visible column of a padded batch against the row alone, fed without pads.
void check_against_rows_alone(const CacheOptions& options, const Rows& tokens, const Rows& mask) {
  for (const auto& pieces : kCuttings) {
    Cache cache = session().make_cache(options);
    const Logits padded = in_pieces(cache, tokens, mask, pieces, true);
    for (std::size_t r = 0; r < tokens.size(); ++r) {
      Rows alone(1);
      std::vector<std::size_t> columns;
      for (std::size_t c = 0; c < tokens[r].size(); ++c)
        if (mask[r][c] == 1) alone[0].push_back(tokens[r][c]), columns.push_back(c);
      const Logits expected = session().forward(nullptr, call(alone));
      for (std::size_t i = 0; i < columns.size(); ++i)
        BOOST_TEST_CONTEXT(cache_kind_name(options.kind) << " row " << r << " column " << columns[i])
      BOOST_TEST(distance(row_of(padded, r, columns[i]), row_of(expected, 0, i)) <= 0.5);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(history)

BOOST_AUTO_TEST_CASE(any_cutting_into_calls_gives_the_logits_of_one_pass_for_every_kind) {
  const Rows tokens = some_tokens(2, 9);
  const Logits whole = session().forward(nullptr, call(tokens));
  for (const auto& options : all_kinds())
    for (const auto& pieces : kCuttings) {
      Cache cache = session().make_cache(options);
      BOOST_TEST(distance(in_pieces(cache, tokens, ones(2, 9), pieces).values, whole.values) <= 0.5);
      BOOST_TEST(cache.length() == 9U);
      BOOST_TEST(cache.batch() == 2U);
    }
}

BOOST_AUTO_TEST_CASE(under_a_window_any_cutting_gives_the_same_logits_from_window_1_to_wider_than_the_history) {
  const Rows tokens = some_tokens(2, 9);
  Rows mask = ones(2, 9);
  mask[0][0] = mask[1][4] = 0;
  for (const std::int64_t window : {1, 2, 3, 5, 8, 9, 20}) {
    Cache one_call = session().make_cache(sliding(30, window));
    const Logits whole = in_pieces(one_call, tokens, mask, {9});
    for (const auto& pieces : kCuttings) {
      Cache cache = session().make_cache(sliding(window, 30));
      BOOST_TEST_CONTEXT("window " << window) BOOST_TEST(distance(in_pieces(cache, tokens, mask, pieces).values, whole.values) <= 0.5);
      BOOST_TEST(cache.save().size() > 0U);
      BOOST_TEST(cache.gone() == static_cast<std::size_t>(std::max<std::int64_t>(9 - window, 0)));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_window_is_a_band_columns_further_back_do_not_matter) {
  Rows tokens = some_tokens(1, 6);
  Cache cache = session().make_cache(sliding(8, 1));
  session().forward(&cache, call(columns_of(tokens, 0, 5)));
  const Logits narrow = session().forward(&cache, call(columns_of(tokens, 5, 6)));
  ForwardInput alone = call(columns_of(tokens, 5, 6));
  alone.position_ids = Rows{{5}};
  BOOST_TEST(distance(narrow.values, session().forward(nullptr, alone).values) <= 0.5);
}

BOOST_AUTO_TEST_CASE(a_left_padded_row_equals_the_row_alone_at_every_step) {
  for (const auto& options : all_kinds())
    check_against_rows_alone(options, some_tokens(3, 9), {{0, 0, 0, 0, 1, 1, 1, 1, 1}, {0, 1, 1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1}});
}

BOOST_AUTO_TEST_CASE(a_row_with_right_and_interior_padding_equals_the_row_alone_at_every_step) {
  for (const auto& options : all_kinds())
    check_against_rows_alone(options, some_tokens(3, 9), {{1, 1, 1, 0, 0, 1, 1, 1, 1}, {1, 0, 1, 1, 0, 1, 0, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 0}});
}

BOOST_AUTO_TEST_CASE(a_past_column_hidden_later_is_unseen_from_then_on) {
  const Rows tokens = some_tokens(1, 5);
  for (const auto& options : all_kinds()) {
    Cache cache = session().make_cache(options);
    session().forward(&cache, call(columns_of(tokens, 0, 3)));
    const Rows positions{{3}};
    const Logits hidden = session().forward(&cache, call(columns_of(tokens, 3, 4), {{1, 0, 1, 1}}, positions));
    Rows short_mask{{1, 1, 1, 1, 1}};
    BOOST_TEST(refusal([&] { session().forward(&cache, call(columns_of(tokens, 4, 5), short_mask)); }) == "mask_revival");
    // One pass cannot say it (column 2 still saw column 1); the same keys in another order of hiding can.
    Cache other = session().make_cache({});
    session().forward(&other, call(columns_of(tokens, 0, 3)));
    ForwardInput look = call(columns_of(tokens, 3, 4), {{1, 0, 1, 1}}, positions);
    look.use_cache = false;
    BOOST_TEST(distance(session().forward(&other, look).values, hidden.values) <= 0.5);
    const Logits shown = session().forward(&other, call(columns_of(tokens, 3, 4)));
    BOOST_TEST(distance(shown.values, hidden.values) > 1.0);
  }
}

BOOST_AUTO_TEST_CASE(last_and_none_are_parts_of_all) {
  const Rows tokens = some_tokens(2, 4);
  ForwardInput input = call(tokens);
  const Logits all = session().forward(nullptr, input);
  BOOST_TEST(all.columns == 4U);
  input.logits = LogitsWanted::last;
  const Logits last = session().forward(nullptr, input);
  BOOST_TEST(last.columns == 1U);
  for (std::size_t r = 0; r < 2; ++r) BOOST_TEST(distance(row_of(last, r, 0), row_of(all, r, 3)) <= 0.5);
  input.logits = LogitsWanted::none;
  Cache cache = session().make_cache({});
  const Logits none = session().forward(&cache, input);
  BOOST_TEST(none.columns == 0U);
  BOOST_TEST(none.values.empty());
  BOOST_TEST(cache.length() == 4U);
}

BOOST_AUTO_TEST_CASE(an_absent_mask_is_all_ones_bit_for_bit) {
  const Rows tokens = some_tokens(2, 4);
  BOOST_TEST((session().forward(nullptr, call(tokens)).values == session().forward(nullptr, call(tokens, ones(2, 4))).values));
}

BOOST_AUTO_TEST_CASE(a_cropped_cache_goes_on_as_if_the_rest_had_never_been_fed) {
  const Rows tokens = some_tokens(2, 8), other = some_tokens(2, 8, 2);
  for (const auto& options : all_kinds())
    for (const std::int64_t length : {0, 1, 5, 7, 8}) {
      Cache cropped = session().make_cache(options), never = session().make_cache(options);
      session().forward(&cropped, call(columns_of(tokens, 0, 5)));
      session().forward(&cropped, call(columns_of(tokens, 5, 8)));
      cropped.crop(length);
      BOOST_TEST(cropped.length() == static_cast<std::size_t>(length));
      if (length > 0) session().forward(&never, call(columns_of(tokens, 0, static_cast<std::size_t>(length))));
      BOOST_TEST(distance(session().forward(&cropped, call(other)).values, session().forward(&never, call(other)).values) <= 0.5);
    }
}

BOOST_AUTO_TEST_CASE(a_ring_cropped_within_its_window_goes_on_as_if_the_rest_had_never_been_fed) {
  const Rows tokens = some_tokens(1, 10), next = some_tokens(1, 2, 3);
  Cache cropped = session().make_cache(sliding(4, 4)), never = session().make_cache(sliding(4, 4));
  session().forward(&cropped, call(tokens));
  cropped.crop(9);
  BOOST_TEST(cropped.gone() == 6U);
  session().forward(&never, call(columns_of(tokens, 0, 9)));
  BOOST_TEST(distance(session().forward(&cropped, call(next)).values, session().forward(&never, call(next)).values) <= 0.5);
}

BOOST_AUTO_TEST_CASE(crop_keeps_the_present_mask_bits) {
  Cache cache = session().make_cache({});
  session().forward(&cache, call({{1, 2, 3}}, {{0, 1, 1}}));
  session().forward(&cache, call({{4}}, {{0, 0, 1, 1}}));
  cache.crop(2);
  BOOST_TEST(refusal([&] { session().forward(&cache, call({{5}}, {{0, 1, 1}})); }) == "mask_revival");
  BOOST_TEST(refusal([&] { session().forward(&cache, call({{5}}, {{0, 0, 1}})); }) == "accepted");
}

BOOST_AUTO_TEST_CASE(what_was_hidden_in_columns_that_were_taken_back_is_forgotten) {
  const auto without_mask = [](Cache& cache) { return refusal([&] { session().forward(&cache, call({{5, 6}})); }); };
  for (const auto& options : all_kinds()) {
    Cache cropped = session().make_cache(options), emptied = session().make_cache(options), reset = session().make_cache(options);
    for (Cache* cache : {&cropped, &emptied, &reset}) session().forward(cache, call({{1, 2, 3}}, {{1, 0, 0}}));
    cropped.crop(1);
    emptied.crop(0);
    reset.reset();
    for (Cache* cache : {&cropped, &emptied, &reset})
      for (int step = 0; step < 2; ++step) BOOST_TEST(without_mask(*cache) == "accepted");
  }
}

BOOST_AUTO_TEST_CASE(an_empty_cache_accepts_any_batch_size) {
  for (const auto& options : all_kinds()) {
    Cache cache = session().make_cache(options);
    for (const std::size_t rows : {2U, 5U, 1U}) {
      const Rows tokens = some_tokens(rows, 3);
      BOOST_TEST(distance(session().forward(&cache, call(tokens)).values, session().forward(nullptr, call(tokens)).values) <= 0.5);
      if (rows == 5) cache.reset();
      if (rows != 5) cache.crop(0);
      BOOST_TEST(cache.batch() == 0U);
      BOOST_TEST(cache.length() == 0U);
    }
  }
}

BOOST_AUTO_TEST_CASE(gathered_rows_bring_their_keys_masks_and_lengths) {
  const Rows tokens = some_tokens(2, 5), mask{{0, 1, 1, 1, 1}, {1, 1, 0, 1, 1}};
  for (const auto& options : all_kinds()) {
    Cache straight = session().make_cache(options), swapped = session().make_cache(options);
    in_pieces(straight, columns_of(tokens, 0, 4), columns_of(mask, 0, 4), {2, 2});
    in_pieces(swapped, columns_of(tokens, 0, 4), columns_of(mask, 0, 4), {4});
    swapped.gather(std::vector<std::int64_t>{1, 0});
    const Logits a = session().forward(&straight, call(columns_of(tokens, 4, 5), mask));
    const Rows step = columns_of(tokens, 4, 5);
    BOOST_TEST(refusal([&] { session().forward(&swapped, call({step[1], step[0]}, mask)); }) == "mask_revival");
    const Logits b = session().forward(&swapped, call({step[1], step[0]}, {mask[1], mask[0]}));
    for (std::size_t r = 0; r < 2; ++r) BOOST_TEST(distance(row_of(b, 1 - r, 0), row_of(a, r, 0)) <= 0.5);
  }
}

BOOST_AUTO_TEST_CASE(a_dynamic_cache_repeats_and_selects_rows) {
  const Rows tokens = some_tokens(2, 3);
  Cache cache = session().make_cache({});
  session().forward(&cache, call(tokens));
  cache.gather(std::vector<std::int64_t>{1, 1, 0});
  BOOST_TEST(cache.batch() == 3U);
  const Logits step = session().forward(&cache, call({{4}, {4}, {4}}));
  BOOST_TEST(distance(row_of(step, 0, 0), row_of(step, 1, 0)) <= 0.5);
  BOOST_TEST(distance(row_of(step, 0, 0), row_of(step, 2, 0)) > 1.0);
}

BOOST_AUTO_TEST_CASE(read_gives_the_columns_held_oldest_first) {
  const Rows tokens = some_tokens(2, 6);
  Cache all = session().make_cache({}), ring = session().make_cache(sliding(4, 4));
  session().forward(&all, call(tokens));
  session().forward(&ring, call(columns_of(tokens, 0, 5)));
  session().forward(&ring, call(columns_of(tokens, 5, 6)));
  const KvArrays kept = ring.read(0), whole = all.read(0);  // layer 0's keys and values know nothing of the window
  BOOST_TEST(kept.columns == 4U);
  const std::size_t n_head = 3, head_dim = 4;
  for (std::size_t block = 0; block < 2 * n_head; ++block)
    BOOST_TEST(distance(std::span(kept.keys).subspan(block * 4 * head_dim, 4 * head_dim),
                        std::span(whole.keys).subspan((block * 6 + 2) * head_dim, 4 * head_dim)) <= 0.5);
  const KvArrays empty = session().make_cache({}).read(1);
  BOOST_TEST(empty.batch == 0U);
  BOOST_TEST(empty.columns == 0U);
  BOOST_TEST(empty.keys.empty());
}

BOOST_AUTO_TEST_CASE(poisoned_slots_never_matter) {
  const Rows tokens = some_tokens(2, 9);
  const Logits whole = session().forward(nullptr, call(tokens));
  for (const auto& options : all_kinds()) {
    Cache cache = session().make_cache(options);
    cache.poison(true);
    BOOST_TEST(distance(in_pieces(cache, tokens, ones(2, 9), {4, 1, 4}).values, whole.values) <= 0.5);
    cache.crop(3);
    BOOST_TEST(distance(session().forward(&cache, call(columns_of(tokens, 3, 4))).values,
                        session().forward(nullptr, [&] { auto in = call(columns_of(tokens, 0, 4)); in.logits = LogitsWanted::last; return in; }()).values) <= 0.5);
  }
}

BOOST_AUTO_TEST_CASE(positions_skip_hidden_columns_and_never_fall_below_0) {
  BOOST_TEST((positions_from_mask({{0, 0, 1, 1, 0, 1}}, 6) == Rows{{0, 0, 0, 1, 1, 2}}));
  BOOST_TEST((positions_from_mask({{0, 1, 1}, {1, 1, 1}}, 1) == Rows{{1}, {2}}));
  BOOST_CHECK_THROW((void)positions_from_mask({{1, 1}}, 3), ShapeError);
}

BOOST_AUTO_TEST_SUITE_END()
