#include <boost/test/unit_test.hpp>
#include <thread>

#include "engine/session/test_support.hpp"

using namespace kvproof;
using namespace kvproof::testing;

BOOST_AUTO_TEST_SUITE(isolation)

BOOST_AUTO_TEST_CASE(clones_share_nothing_as_the_third_step_shows) {
  const Rows prefix = some_tokens(2, 3), left = some_tokens(2, 1, 2), right = some_tokens(2, 1, 3), third = some_tokens(2, 2, 4);
  for (const auto& options : all_kinds()) {
    Cache a = session().make_cache(options), reference = session().make_cache(options);
    session().forward(&a, call(prefix));
    Cache b = a.clone();
    session().forward(&a, call(left));
    session().forward(&b, call(right));
    session().forward(&reference, call(prefix));
    session().forward(&reference, call(left));
    BOOST_TEST((session().forward(&a, call(third)).values == session().forward(&reference, call(third)).values));
    b.crop(0);
    BOOST_TEST((a.save() == reference.save()));
  }
}

BOOST_AUTO_TEST_CASE(a_clone_carries_the_mask_and_hides_on_its_own) {
  Cache a = session().make_cache({});
  session().forward(&a, call({{1, 2}}, {{0, 1}}));
  Cache b = a.clone();
  BOOST_TEST(refusal([&] { session().forward(&b, call({{3}})); }) == "mask_revival");
  session().forward(&b, call({{3}}, {{0, 0, 1}}));
  BOOST_TEST(refusal([&] { session().forward(&a, call({{3}}, {{0, 1, 1}})); }) == "accepted");
}

BOOST_AUTO_TEST_CASE(a_read_only_call_answers_as_if_appended_and_leaves_no_trace) {
  const Rows prefix = some_tokens(2, 5), next = some_tokens(2, 3, 2);
  std::vector<CacheOptions> kinds = all_kinds();
  kinds.push_back(sliding(4, 3));
  for (const auto& options : kinds) {
    Cache cache = session().make_cache(options);
    session().forward(&cache, call(prefix, {{0, 1, 1, 1, 1}, {1, 1, 1, 1, 1}}));
    const auto before = cache.save();
    const auto bytes = cache.bytes_held();
    ForwardInput input = call(next, {{0, 0, 1, 1, 1, 1, 1, 0}, {1, 1, 1, 1, 1, 1, 1, 1}});  // hides a past column, for this call only
    input.use_cache = false;
    const Logits answer = session().forward(&cache, input);
    BOOST_TEST((cache.save() == before));
    BOOST_TEST(cache.bytes_held() == bytes);
    input.use_cache = true;
    BOOST_TEST((session().forward(&cache, input).values == answer.values));
    BOOST_TEST(cache.length() == 8U);
  }
}

BOOST_AUTO_TEST_CASE(a_read_only_call_on_an_empty_cache_leaves_it_empty) {
  for (const auto& options : all_kinds()) {
    Cache cache = session().make_cache(options);
    ForwardInput input = call(some_tokens(2, 3));
    input.use_cache = false;
    BOOST_TEST((session().forward(&cache, input).values == session().forward(nullptr, input).values));
    BOOST_TEST(cache.batch() == 0U);
    BOOST_TEST(cache.bytes_held() == 0U);
    BOOST_TEST(refusal([&] { session().forward(&cache, call(some_tokens(3, 1))); }) == "accepted");
  }
}

BOOST_AUTO_TEST_CASE(caches_used_in_turn_do_not_meet) {
  const Rows a_tokens = some_tokens(1, 6), b_tokens = some_tokens(3, 6, 2);
  Cache a = session().make_cache({}), b = session().make_cache(fixed(8));
  Logits last_a, last_b;
  for (std::size_t c = 0; c < 6; ++c) {
    last_a = session().forward(&a, call(columns_of(a_tokens, c, c + 1)));
    last_b = session().forward(&b, call(columns_of(b_tokens, c, c + 1)));
  }
  ForwardInput whole = call(b_tokens);
  whole.logits = LogitsWanted::last;
  BOOST_TEST(distance(last_b.values, session().forward(nullptr, whole).values) <= 0.5);
  whole.input_ids = a_tokens;
  BOOST_TEST(distance(last_a.values, session().forward(nullptr, whole).values) <= 0.5);
}

BOOST_AUTO_TEST_CASE(one_session_serves_many_threads_each_with_its_own_cache) {
  constexpr std::size_t kThreads = 4, kSteps = 12;
  const auto run = [](std::size_t lane) {
    const Rows tokens = some_tokens(2, kSteps, lane);
    Cache cache = session().make_cache(all_kinds()[lane % 3]);
    std::vector<float> values;
    for (std::size_t c = 0; c < kSteps; ++c) {
      const Logits step = session().forward(&cache, call(columns_of(tokens, c, c + 1)));
      values.insert(values.end(), step.values.begin(), step.values.end());
    }
    const auto saved = cache.save();
    return std::pair(values, saved);
  };
  std::vector<std::pair<std::vector<float>, std::vector<std::byte>>> together(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t lane = 0; lane < kThreads; ++lane) threads.emplace_back([&, lane] { together[lane] = run(lane); });
  for (auto& thread : threads) thread.join();
  for (std::size_t lane = 0; lane < kThreads; ++lane) BOOST_TEST((together[lane] == run(lane)));
}

BOOST_AUTO_TEST_CASE(a_cache_keeps_its_model_alive) {
  std::optional<Cache> cache;
  {
    const Session own(make_model(5));
    cache.emplace(own.make_cache({}));
    own.forward(&*cache, call({{1, 2}}));
  }
  BOOST_TEST(cache->length() == 2U);
  BOOST_TEST(refusal([&] { session().forward(&*cache, call({{3}})); }) == "model_mismatch");
  BOOST_TEST(!cache->save().empty());
}

BOOST_AUTO_TEST_CASE(two_sessions_of_one_model_share_its_caches) {
  const auto model = make_model(6);
  const Session a(model), b(model);
  Cache cache = a.make_cache({});
  a.forward(&cache, call({{1, 2}}));
  BOOST_TEST(refusal([&] { b.forward(&cache, call({{3}})); }) == "accepted");
}

BOOST_AUTO_TEST_SUITE_END()
