#include "engine/cache/kv_cache.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "engine/base/error.hpp"

using namespace kvproof;

namespace {

constexpr KvShape kShape{2, 3, 4};
constexpr std::size_t kWidth = 12;  // n_head * head_dim

/// The number that row, column, layer, element and K or V stand for: every place has its own.
float value(std::size_t layer, bool is_value, std::size_t row, std::size_t column, std::size_t element) {
  return static_cast<float>((((layer * 2 + (is_value ? 1U : 0U)) * 8 + row) * 100 + column) * kWidth + element);
}

/// Feeds `count` columns to rows that stand for `names` (a row's name is what its numbers are made of).
void feed(KvCache& cache, const std::vector<std::size_t>& names, std::size_t count) {
  const std::size_t first = cache.length();
  cache.reserve(names.size(), count);
  const std::size_t kept = std::min(count, cache.window_in_force().value_or(count));
  std::vector<SlotWrite> writes;
  for (std::size_t t = count - kept; t < count; ++t) writes.push_back({t, cache.slot(first + t)});
  for (std::size_t layer = 0; layer < kShape.n_layer; ++layer) {
    std::vector<float> keys, values;
    for (const std::size_t name : names)
      for (std::size_t column = first; column < first + count; ++column)
        for (std::size_t i = 0; i < kWidth; ++i) {
          keys.push_back(value(layer, false, name, column, i));
          values.push_back(value(layer, true, name, column, i));
        }
    cache.update(layer, {keys.data(), values.data(), count * kWidth, kWidth}, names.size(), writes);
  }
  cache.advance(names.size(), first + count);
}

/// The cache must hold exactly columns gone .. length-1 of rows named `names`.
void check_holds(const KvCache& cache, const std::vector<std::size_t>& names, std::size_t gone, std::size_t length) {
  BOOST_TEST(cache.length() == length);
  BOOST_TEST(cache.gone() == gone);
  BOOST_TEST(cache.batch() == names.size());
  for (std::size_t layer = 0; layer < kShape.n_layer; ++layer) {
    const KvArrays held = cache.read(layer);
    std::vector<float> keys, values;
    for (const std::size_t name : names)
      for (std::size_t head = 0; head < kShape.n_head; ++head)
        for (std::size_t column = gone; column < length; ++column)
          for (std::size_t i = 0; i < kShape.head_dim; ++i) {
            keys.push_back(value(layer, false, name, column, head * kShape.head_dim + i));
            values.push_back(value(layer, true, name, column, head * kShape.head_dim + i));
          }
    BOOST_TEST(held.columns == length - gone);
    BOOST_TEST(held.batch == names.size());
    BOOST_TEST(held.keys == keys, boost::test_tools::per_element());
    BOOST_TEST(held.values == values, boost::test_tools::per_element());
  }
}

std::vector<std::unique_ptr<KvCache>> one_of_each() {
  std::vector<std::unique_ptr<KvCache>> caches;
  caches.push_back(make_dynamic_cache(kShape));
  caches.push_back(make_static_cache(kShape, 20));
  caches.push_back(make_static_sliding_window_cache(kShape, 20, 20));
  return caches;
}

/// How many floats of the slot of `column` are NaN, over everything stored.
std::size_t poisoned_floats(const KvCache& cache, std::size_t slot) {
  std::size_t count = 0;
  for (std::size_t layer = 0; layer < kShape.n_layer; ++layer) {
    const KvView view = cache.view(layer);
    for (std::size_t row = 0; row < cache.bytes_held() / (kShape.n_layer * 2 * view.row_stride * sizeof(float)); ++row)
      for (std::size_t head = 0; head < kShape.n_head; ++head)
        for (std::size_t i = 0; i < kShape.head_dim; ++i) {
          const std::size_t at = row * view.row_stride + head * view.head_stride + slot * kShape.head_dim + i;
          count += (std::isnan(view.keys[at]) ? 1U : 0U) + (std::isnan(view.values[at]) ? 1U : 0U);
        }
  }
  return count;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kv_cache)

BOOST_AUTO_TEST_CASE(an_empty_cache_holds_nothing_and_reads_as_nothing) {
  for (const auto& cache : one_of_each()) {
    BOOST_TEST(cache->bytes_held() == 0U);
    check_holds(*cache, {}, 0, 0);
    check_holds(*cache->clone(), {}, 0, 0);
  }
}

BOOST_AUTO_TEST_CASE(columns_come_back_oldest_first_whatever_the_chunks) {
  for (const auto& cache : one_of_each()) {
    for (const std::size_t count : {3U, 1U, 7U, 1U}) feed(*cache, {0, 1}, count);
    check_holds(*cache, {0, 1}, 0, 12);
  }
}

BOOST_AUTO_TEST_CASE(what_a_cache_was_made_with_can_be_asked) {
  const auto fixed = make_static_cache(kShape, 7);
  const auto ring = make_static_sliding_window_cache(kShape, 7, 9);
  const auto narrow = make_static_sliding_window_cache(kShape, 7, 3);
  BOOST_TEST((fixed->kind() == CacheKind::fixed && fixed->capacity() == 7U && !fixed->window_in_force()));
  BOOST_TEST((ring->capacity() == 7U && ring->window() == 9U && ring->window_in_force() == 7U));
  BOOST_TEST((narrow->window_in_force() == 3U));
}

BOOST_AUTO_TEST_CASE(a_static_cache_allocates_its_capacity_once) {
  const auto cache = make_static_cache(kShape, 9);
  feed(*cache, {0, 1}, 1);
  const std::size_t bytes = cache->bytes_held();
  const float* where = cache->view(0).keys;
  BOOST_TEST(bytes == 2 * kShape.n_layer * 2 * 9 * kWidth * sizeof(float));
  feed(*cache, {0, 1}, 8);
  BOOST_TEST(cache->bytes_held() == bytes);
  BOOST_TEST(cache->view(0).keys == where);
  BOOST_TEST(reinterpret_cast<std::uintptr_t>(where) % 64 == 0U);
}

BOOST_AUTO_TEST_CASE(a_dynamic_cache_moves_rarely) {
  const auto cache = make_dynamic_cache(kShape);
  std::size_t moves = 0, moved_columns = 0;
  const float* where = nullptr;
  for (std::size_t column = 0; column < 1000; ++column) {
    const std::size_t before = cache->length();
    cache->reserve(1, 1);
    if (cache->view(0).keys != where) ++moves, moved_columns += before;
    where = cache->view(0).keys;
    cache->advance(1, before + 1);
  }
  BOOST_TEST(moves <= 8U);
  BOOST_TEST(moved_columns <= 2000U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(sliding_window)

BOOST_AUTO_TEST_CASE(a_wrapped_ring_returns_the_last_columns_oldest_first) {
  for (const std::size_t window : {1U, 2U, 5U}) {
    for (const std::size_t chunk : {1U, 2U, 5U, 11U}) {
      const auto cache = make_static_sliding_window_cache(kShape, 50, window);
      for (std::size_t length = 0; length < 22; length += chunk) {
        feed(*cache, {0, 1}, chunk);
        const std::size_t now = length + chunk;
        check_holds(*cache, {0, 1}, now > window ? now - window : 0, now);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_ring_has_no_slot_more_than_the_window) {
  const auto cache = make_static_sliding_window_cache(kShape, 1000, 5);
  feed(*cache, {0}, 30);
  BOOST_TEST(cache->bytes_held() == 2 * kShape.n_layer * 5 * kWidth * sizeof(float));
}

BOOST_AUTO_TEST_CASE(what_is_gone_stays_gone_after_a_crop) {
  const auto cache = make_static_sliding_window_cache(kShape, 50, 5);
  feed(*cache, {0, 1}, 12);
  cache->crop(10);
  check_holds(*cache, {0, 1}, 7, 10);
  feed(*cache, {0, 1}, 1);
  check_holds(*cache, {0, 1}, 7, 11);
  feed(*cache, {0, 1}, 2);
  check_holds(*cache, {0, 1}, 8, 13);
  cache->crop(3);
  check_holds(*cache, {0, 1}, 3, 3);
  cache->crop(0);
  check_holds(*cache, {}, 0, 0);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(operations)

BOOST_AUTO_TEST_CASE(crop_keeps_the_first_columns_and_writing_goes_on_there) {
  for (const auto& cache : one_of_each()) {
    feed(*cache, {0, 1}, 9);
    cache->crop(4);
    check_holds(*cache, {0, 1}, 0, 4);
    feed(*cache, {0, 1}, 3);
    check_holds(*cache, {0, 1}, 0, 7);
  }
}

BOOST_AUTO_TEST_CASE(an_emptied_cache_takes_another_batch) {
  for (const auto& cache : one_of_each()) {
    feed(*cache, {0, 1, 2}, 5);
    cache->reset();
    check_holds(*cache, {}, 0, 0);
    feed(*cache, {4}, 6);
    check_holds(*cache, {4}, 0, 6);
    cache->crop(0);
    feed(*cache, {5, 6}, 2);
    check_holds(*cache, {5, 6}, 0, 2);
  }
}

BOOST_AUTO_TEST_CASE(gather_reorders_repeats_and_selects) {
  const std::vector<std::vector<std::size_t>> picks{{1, 0, 2}, {0, 0, 2}, {2, 2, 2}, {0, 1, 2}, {1}, {2, 0}, {0, 1, 1, 2, 2}};
  for (const auto& rows : picks)
    for (const auto& cache : one_of_each()) {
      if (cache->kind() != CacheKind::dynamic && rows.size() != 3) continue;
      feed(*cache, {0, 1, 2}, 5);
      cache->gather(rows);
      check_holds(*cache, rows, 0, 5);
      feed(*cache, rows, 20 - 5);
      check_holds(*cache, rows, 0, 20);
    }
}

BOOST_AUTO_TEST_CASE(gather_moves_a_wrapped_ring) {
  const auto cache = make_static_sliding_window_cache(kShape, 50, 4);
  feed(*cache, {0, 1}, 7);
  cache->gather(std::vector<std::size_t>{1, 0});
  check_holds(*cache, {1, 0}, 3, 7);
}

BOOST_AUTO_TEST_CASE(a_clone_shares_nothing) {
  for (const auto& cache : one_of_each()) {
    feed(*cache, {0, 1}, 5);
    const auto copy = cache->clone();
    feed(*cache, {3, 4}, 2);
    check_holds(*copy, {0, 1}, 0, 5);
    feed(*copy, {0, 1}, 3);
    check_holds(*copy, {0, 1}, 0, 8);
    cache->crop(5);
    check_holds(*cache, {0, 1}, 0, 5);
    BOOST_TEST((copy->kind() == cache->kind() && copy->capacity() == cache->capacity() && copy->window() == cache->window()));
  }
}

BOOST_AUTO_TEST_CASE(restore_brings_back_what_read_gave) {
  for (const auto& [made, columns] : {std::pair{0, 6U}, {1, 6U}, {2, 6U}, {3, 11U}}) {
    const auto make = [kind = made]() {
      if (kind == 0) return make_dynamic_cache(kShape);
      if (kind == 1) return make_static_cache(kShape, 9);
      return make_static_sliding_window_cache(kShape, 9, kind == 2 ? 9 : 4);
    };
    const auto cache = make();
    feed(*cache, {2, 1}, columns);
    std::vector<KvArrays> layers;
    for (std::size_t layer = 0; layer < kShape.n_layer; ++layer) layers.push_back(cache->read(layer));
    const auto again = make();
    feed(*again, {5}, 3);
    again->reset();
    again->poison(true);
    again->restore(layers, cache->length(), cache->gone());
    check_holds(*again, {2, 1}, cache->gone(), columns);
    if (made != 1) feed(*again, {2, 1}, 4);
    if (made == 3) check_holds(*again, {2, 1}, 11, 15);
  }
}

BOOST_AUTO_TEST_CASE(restore_refuses_what_does_not_fit_and_changes_nothing) {
  const auto source = make_static_sliding_window_cache(kShape, 9, 4);
  feed(*source, {0, 1}, 7);
  std::vector<KvArrays> layers{source->read(0), source->read(1)};
  const auto target = make_static_sliding_window_cache(kShape, 9, 4);
  const auto refused = [&](std::vector<KvArrays> broken, std::size_t length, std::size_t gone) {
    BOOST_CHECK_THROW(target->restore(broken, length, gone), ShapeError);
    check_holds(*target, {}, 0, 0);
    BOOST_TEST(target->bytes_held() == 0U);
  };
  refused({layers[0]}, 7, 3);
  refused({}, 7, 3);
  refused(layers, 7, 2);
  refused(layers, 7, 8);
  refused(layers, 8, 3);
  refused(layers, std::numeric_limits<std::size_t>::max(), 3);
  auto broken = layers;
  broken[1].keys.pop_back();
  refused(broken, 7, 3);
  broken = layers;
  broken[1].batch = 1;
  refused(broken, 7, 3);
  BOOST_CHECK_THROW(make_dynamic_cache(kShape)->restore(layers, 7, 3), ShapeError);
  BOOST_CHECK_THROW(source->restore(layers, 7, 3), ShapeError);
  const auto small = make_static_cache(kShape, 3);
  const auto four = make_dynamic_cache(kShape);
  feed(*four, {0}, 4);
  BOOST_CHECK_THROW(small->restore(std::vector{four->read(0), four->read(1)}, 4, 0), ShapeError);
}

BOOST_AUTO_TEST_CASE(an_empty_history_can_be_restored) {
  for (const auto& cache : one_of_each()) {
    const std::vector<KvArrays> layers{cache->read(0), cache->read(1)};
    cache->restore(layers, 0, 0);
    check_holds(*cache, {}, 0, 0);
  }
}

BOOST_AUTO_TEST_CASE(a_size_that_overflows_or_fits_no_machine_fails_before_anything_changed) {
  const std::size_t huge = std::numeric_limits<std::size_t>::max();
  for (const std::size_t capacity : {huge, huge / 2 + 1, huge / (2 * kShape.n_layer * kWidth * sizeof(float)) + 2, std::size_t{1} << 45U}) {
    const auto fixed = make_static_cache(kShape, capacity);
    BOOST_CHECK_THROW(fixed->reserve(1, 1), Error);
    check_holds(*fixed, {}, 0, 0);
    BOOST_TEST(fixed->bytes_held() == 0U);
    BOOST_CHECK_THROW(make_static_sliding_window_cache(kShape, capacity, capacity)->reserve(1, 1), Error);
    const auto grown = make_dynamic_cache(kShape);
    feed(*grown, {0, 1}, 5);
    BOOST_CHECK_THROW(grown->reserve(2, capacity - 5), Error);
    check_holds(*grown, {0, 1}, 0, 5);
  }
}

BOOST_AUTO_TEST_CASE(a_wide_window_in_a_large_capacity_needs_only_the_smaller) {
  const auto cache = make_static_sliding_window_cache(kShape, std::numeric_limits<std::size_t>::max(), 4);
  feed(*cache, {0}, 9);
  check_holds(*cache, {0}, 5, 9);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(poison)

constexpr std::size_t kSlotFloats = kShape.n_layer * 2 * kWidth;  // of one row

BOOST_AUTO_TEST_CASE(slots_without_a_column_are_nan_after_every_operation) {
  const auto cache = make_static_cache(kShape, 6);
  cache->poison(true);
  feed(*cache, {0, 1}, 4);
  const auto check = [](const KvCache& held, std::size_t length, std::size_t slots) {
    const std::size_t rows = std::max<std::size_t>(held.batch(), 2);
    for (std::size_t slot = 0; slot < slots; ++slot) BOOST_TEST(poisoned_floats(held, slot) == (slot < length ? 0 : rows * kSlotFloats));
  };
  check(*cache, 4, 6);
  cache->crop(2);
  check(*cache, 2, 6);
  check(*cache->clone(), 2, 6);
  cache->gather(std::vector<std::size_t>{1, 0});
  check(*cache, 2, 6);
  feed(*cache, {1, 0}, 3);
  check(*cache, 5, 6);
  cache->reset();
  check(*cache, 0, 6);
}

BOOST_AUTO_TEST_CASE(growing_leaves_new_slots_poisoned) {
  const auto cache = make_dynamic_cache(kShape);
  cache->poison(true);
  feed(*cache, {0}, 16);
  feed(*cache, {0}, 1);
  check_holds(*cache, {0}, 0, 17);
  BOOST_TEST(poisoned_floats(*cache, 16) == 0U);
  BOOST_TEST(poisoned_floats(*cache, 17) == kSlotFloats);
}

BOOST_AUTO_TEST_CASE(a_cropped_ring_is_poisoned_where_columns_were) {
  const auto cache = make_static_sliding_window_cache(kShape, 50, 5);
  cache->poison(true);
  feed(*cache, {0}, 12);  // columns 7 .. 11 in slots 2 3 4 0 1
  cache->crop(9);
  for (std::size_t slot = 0; slot < 5; ++slot) BOOST_TEST(poisoned_floats(*cache, slot) == (slot == 2 || slot == 3 ? 0 : kSlotFloats));
  check_holds(*cache, {0}, 7, 9);
}

BOOST_AUTO_TEST_CASE(poison_can_be_switched_on_later_and_off) {
  const auto cache = make_static_cache(kShape, 4);
  feed(*cache, {0}, 4);
  cache->crop(1);
  cache->poison(true);
  BOOST_TEST(poisoned_floats(*cache, 2) == kSlotFloats);
  cache->poison(false);
  feed(*cache, {0}, 3);
  cache->crop(1);
  BOOST_TEST(poisoned_floats(*cache, 2) == 0U);
  check_holds(*cache, {0}, 0, 1);
}

BOOST_AUTO_TEST_SUITE_END()
