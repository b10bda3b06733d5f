#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <new>

#include "engine/session/test_support.hpp"

// This program counts its allocations and can make one of them fail: how the two promises about memory are tested.

using namespace kvproof;
using namespace kvproof::testing;

namespace {

std::atomic<std::size_t> allocations{0};
std::atomic<std::size_t> fail_at{0};  // the n-th allocation from now throws; 0 = none

void* allocate(std::size_t size, std::size_t alignment) {
  ++allocations;
  if (fail_at > 0) {
    const std::size_t left = --fail_at;
    if (left == 0) throw std::bad_alloc();
  }
  void* memory = nullptr;
  if (posix_memalign(&memory, std::max(alignment, sizeof(void*)), std::max<std::size_t>(size, 1)) != 0) throw std::bad_alloc();
  return memory;
}

// Allocations of one call.
template <class Call>
std::size_t counted(Call&& run) {
  const std::size_t before = allocations;
  run();
  return allocations - before;
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) { return allocate(size, static_cast<std::size_t>(alignment)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

BOOST_AUTO_TEST_SUITE(allocation)

BOOST_AUTO_TEST_CASE(a_decode_step_on_a_static_cache_allocates_nothing) {
  for (const bool masked : {false, true}) {
    Cache cache = session().make_cache(fixed(24));
    Logits logits;
    session().forward_into(&cache, call(some_tokens(2, 5)), logits);
    for (std::size_t c = 5; c < 24; ++c) {
      ForwardInput step = call(some_tokens(2, 1, c));
      if (masked) step.attention_mask = Rows(2, std::vector<std::int64_t>(c + 1, 1));
      if (masked) step.position_ids = Rows(2, {static_cast<std::int64_t>(c)});
      BOOST_TEST_CONTEXT("column " << c) BOOST_TEST(counted([&] { session().forward_into(&cache, step, logits); }) == 0U);
    }
    BOOST_TEST(cache.length() == 24U);
  }
}

BOOST_AUTO_TEST_CASE(it_allocates_nothing_either_after_crop_gather_and_reset) {
  Cache cache = session().make_cache(fixed(24));
  Logits logits;
  session().forward_into(&cache, call(some_tokens(2, 6)), logits);
  const ForwardInput step = call(some_tokens(2, 1));
  cache.crop(3);
  BOOST_TEST(counted([&] { session().forward_into(&cache, step, logits); }) == 0U);
  cache.gather(std::vector<std::int64_t>{1, 0});
  BOOST_TEST(counted([&] { session().forward_into(&cache, step, logits); }) == 0U);
  cache.reset();
  BOOST_TEST(counted([&] { session().forward_into(&cache, step, logits); }) == 0U);
}

BOOST_AUTO_TEST_CASE(a_dynamic_cache_allocates_rarely) {
  Cache cache = session().make_cache({});
  Logits logits;
  std::size_t steps_that_allocate = 0;
  for (std::size_t c = 0; c < 32; ++c) {
    const ForwardInput step = call(some_tokens(1, 1, c));
    if (counted([&] { session().forward_into(&cache, step, logits); }) > 0) ++steps_that_allocate;
  }
  BOOST_TEST(steps_that_allocate < 12U);
}

BOOST_AUTO_TEST_CASE(whichever_allocation_fails_everything_is_as_before_and_the_call_works_again) {
  std::vector<CacheOptions> kinds = all_kinds();
  kinds.push_back(sliding(4, 3));
  for (const auto& options : kinds) {
    Cache cache = session().make_cache(options);
    session().forward(&cache, call(some_tokens(2, 3), {{0, 1, 1}, {1, 1, 1}}));
    const ForwardInput step = call(some_tokens(2, 17), Rows{std::vector<std::int64_t>(20, 0), std::vector<std::int64_t>(20, 1)});
    const auto before = cache.save();
    std::size_t failures = 0;
    for (std::size_t n = 1;; ++n) {
      Cache attempt = cache.clone();
      Logits logits{1, 1, 1, {0.5F}};
      fail_at = n;
      try {
        session().forward_into(&attempt, step, logits);
        fail_at = 0;
        BOOST_TEST(attempt.length() == 20U);
        break;
      } catch (const std::bad_alloc&) {
        fail_at = 0;
        ++failures;
        BOOST_TEST((attempt.save() == before));
        BOOST_TEST((logits.columns == 1 && logits.values == std::vector<float>{0.5F}));
        session().forward_into(&attempt, step, logits);
        BOOST_TEST(attempt.length() == 20U);
      }
    }
    BOOST_TEST(failures >= 5U);
  }
}

BOOST_AUTO_TEST_CASE(crop_gather_and_clone_that_run_out_of_memory_change_nothing) {
  Cache cache = session().make_cache({});
  session().forward(&cache, call(some_tokens(2, 5), {{0, 1, 1, 1, 1}, {1, 1, 1, 1, 1}}));
  const auto before = cache.save();
  const std::vector<std::int64_t> rows{1, 0, 1};
  for (std::size_t n = 1;; ++n) {
    fail_at = n;
    try {
      cache.gather(rows);
      fail_at = 0;
      BOOST_TEST(n > 3U);
      break;
    } catch (const std::bad_alloc&) {
      fail_at = 0;
      BOOST_TEST((cache.save() == before));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_capacity_that_no_machine_has_is_an_error_and_leaves_the_cache_empty) {
  for (const std::int64_t capacity : {std::int64_t{1} << 40, std::numeric_limits<std::int64_t>::max()}) {
    Cache cache = session().make_cache(fixed(capacity));
    BOOST_CHECK_THROW(session().forward(&cache, call({{1, 2}})), std::exception);
    BOOST_TEST(cache.length() == 0U);
    BOOST_TEST(cache.bytes_held() == 0U);
    Cache ring = session().make_cache(sliding(capacity, 3));  // a ring holds the smaller of the two
    BOOST_TEST(refusal([&] { session().forward(&ring, call({{1, 2, 3, 4}})); }) == "accepted");
  }
}

BOOST_AUTO_TEST_CASE(bytes_held_are_those_of_the_slots) {
  const std::size_t one_slot = 2 * 2 * 3 * 4 * sizeof(float);  // layers, K and V, heads, head_dim
  Cache whole = session().make_cache(fixed(24)), ring = session().make_cache(sliding(24, 5));
  BOOST_TEST(whole.bytes_held() == 0U);
  session().forward(&whole, call(some_tokens(2, 3)));
  session().forward(&ring, call(some_tokens(2, 9)));
  BOOST_TEST(whole.bytes_held() == 2 * 24 * one_slot);
  BOOST_TEST(ring.bytes_held() == 2 * 5 * one_slot);
}

BOOST_AUTO_TEST_SUITE_END()
