#include "engine/session/planner.hpp"

#include <boost/test/unit_test.hpp>

#include "engine/session/test_support.hpp"

// Plans without arithmetic: the caches below hold columns that nobody has computed.

using namespace kvproof;
using namespace kvproof::testing;

namespace {

using Sizes = std::vector<std::size_t>;

constexpr KvShape kShape{1, 1, 1};

std::unique_ptr<KvCache> holding(const CacheOptions& options, std::size_t columns, std::size_t batch = 1) {
  auto cache = make_kv_cache(kShape, options);
  if (columns == 0) return cache;
  cache->reserve(batch, columns);
  cache->advance(batch, columns);
  return cache;
}

StepPlan plan_of(const ForwardInput& input, const KvCache* cache) {
  StepPlan plan;
  plan_step(input, cache, plan);
  return plan;
}

// One string a query, one character a key: '1' seen, '.' not.
std::vector<std::string> seen(const StepPlan& plan) {
  const std::size_t keys = plan.read_slot.size() + plan.new_columns;
  std::vector<std::string> queries;
  for (std::size_t i = 0; i < plan.visible.size(); i += keys) {
    std::string& query = queries.emplace_back();
    for (std::size_t k = 0; k < keys; ++k) query += plan.visible[i + k] == 1 ? '1' : '.';
  }
  return queries;
}

Sizes slots_written(const StepPlan& plan) {
  Sizes slots;
  for (const SlotWrite& write : plan.writes) slots.push_back(write.slot);
  return slots;
}

Sizes columns_written(const StepPlan& plan) {
  Sizes columns;
  for (const SlotWrite& write : plan.writes) columns.push_back(plan.past_length + write.t);
  return columns;
}

ForwardInput tokens(std::size_t columns) { return call(Rows(1, std::vector<std::int64_t>(columns, 5))); }

using Strings = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_SUITE(planner)

BOOST_AUTO_TEST_CASE(a_pass_without_a_cache_is_a_triangle_that_stores_nothing) {
  const StepPlan plan = plan_of(call({{7, 8, 9}}), nullptr);
  BOOST_TEST(plan.batch == 1U);
  BOOST_TEST(plan.new_columns == 3U);
  BOOST_TEST(plan.past_length == 0U);
  BOOST_TEST(plan.new_length == 0U);
  BOOST_TEST(plan.token == (std::vector<std::uint32_t>{7, 8, 9}));
  BOOST_TEST(plan.position == (std::vector<std::uint32_t>{0, 1, 2}));
  BOOST_TEST(plan.read_slot.empty());
  BOOST_TEST(plan.writes.empty());
  BOOST_TEST(seen(plan) == (Strings{"1..", "11.", "111"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(default_positions_and_slots_count_on_from_the_columns_held) {
  for (const auto& options : {CacheOptions{}, fixed(8)}) {
    const StepPlan plan = plan_of(tokens(2), holding(options, 3).get());
    BOOST_TEST(plan.position == (std::vector<std::uint32_t>{3, 4}));
    BOOST_TEST(plan.new_length == 5U);
    BOOST_TEST(plan.read_slot == (Sizes{0, 1, 2}), boost::test_tools::per_element());
    BOOST_TEST(slots_written(plan) == (Sizes{3, 4}), boost::test_tools::per_element());
    BOOST_TEST(seen(plan) == (Strings{"1111.", "11111"}), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(explicit_positions_are_taken_as_they_are) {
  ForwardInput input = tokens(2);
  input.position_ids = Rows{{9, 0}};
  BOOST_TEST(plan_of(input, holding({}, 3).get()).position == (std::vector<std::uint32_t>{9, 0}));
}

BOOST_AUTO_TEST_CASE(hidden_columns_past_and_new_are_seen_by_no_query_not_even_by_themselves) {
  const auto cache = holding({}, 3, 2);
  const StepPlan plan = plan_of(call({{1, 2}, {3, 4}}, {{0, 1, 1, 0, 1}, {1, 1, 0, 1, 1}}), cache.get());
  BOOST_TEST(seen(plan) == (Strings{".11..", ".11.1", "11.1.", "11.11"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_query_that_sees_nothing_is_planned_as_such) {
  const StepPlan plan = plan_of(call({{1, 2}}, {{0, 1}}), nullptr);
  BOOST_TEST(seen(plan) == (Strings{"..", ".1"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_read_only_call_is_planned_like_any_other_but_stores_nothing) {
  const auto cache = holding(sliding(4, 3), 5);
  ForwardInput input = tokens(2);
  const StepPlan stored = plan_of(input, cache.get());
  input.use_cache = false;
  const StepPlan plan = plan_of(input, cache.get());
  BOOST_TEST(plan.writes.empty());
  BOOST_TEST(plan.new_length == 5U);
  BOOST_TEST(plan.read_slot == stored.read_slot, boost::test_tools::per_element());
  BOOST_TEST(plan.visible == stored.visible, boost::test_tools::per_element());
  BOOST_TEST(plan.position == stored.position, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(before_the_wrap_a_ring_reads_all_it_holds) {
  const StepPlan plan = plan_of(tokens(1), holding(sliding(4, 8), 2).get());
  BOOST_TEST(plan.read_slot == (Sizes{0, 1}), boost::test_tools::per_element());
  BOOST_TEST(slots_written(plan) == (Sizes{2}), boost::test_tools::per_element());
  BOOST_TEST(seen(plan) == (Strings{"111"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_wrapped_ring_is_read_oldest_first_and_overwrites_the_column_that_left_the_window) {
  const StepPlan plan = plan_of(tokens(1), holding(sliding(4, 8), 6).get());  // holds columns 2 3 4 5 in slots 2 3 0 1
  BOOST_TEST(plan.read_slot == (Sizes{3, 0, 1}), boost::test_tools::per_element());  // column 2 is 4 back: out of sight
  BOOST_TEST(slots_written(plan) == (Sizes{2}), boost::test_tools::per_element());
  BOOST_TEST(seen(plan) == (Strings{"1111"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(each_query_of_a_chunk_under_a_window_sees_its_own_band) {
  const StepPlan plan = plan_of(tokens(3), holding(sliding(9, 3), 4).get());
  BOOST_TEST(plan.read_slot == (Sizes{2, 0}), boost::test_tools::per_element());  // columns 2 and 3
  BOOST_TEST(seen(plan) == (Strings{"111..", ".111.", "..111"}), boost::test_tools::per_element());
  BOOST_TEST(columns_written(plan) == (Sizes{4, 5, 6}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_chunk_longer_than_the_window_stores_its_last_columns_each_slot_once) {
  const StepPlan plan = plan_of(tokens(5), holding(sliding(2, 2), 1).get());
  BOOST_TEST(plan.new_length == 6U);
  BOOST_TEST(columns_written(plan) == (Sizes{4, 5}), boost::test_tools::per_element());
  BOOST_TEST(slots_written(plan) == (Sizes{0, 1}), boost::test_tools::per_element());
  BOOST_TEST(seen(plan) == (Strings{"11....", ".11...", "..11..", "...11.", "....11"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_window_of_one_sees_only_the_query_itself) {
  const StepPlan plan = plan_of(tokens(2), holding(sliding(8, 1), 3).get());
  BOOST_TEST(plan.read_slot.empty());
  BOOST_TEST(seen(plan) == (Strings{"1.", ".1"}), boost::test_tools::per_element());
  BOOST_TEST(slots_written(plan) == (Sizes{0}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(after_a_crop_a_ring_reads_no_column_that_it_has_lost) {
  const auto cache = holding(sliding(4, 4), 10);  // gone 6, holds 6 7 8 9
  cache->crop(9);
  const StepPlan plan = plan_of(tokens(1), cache.get());
  BOOST_TEST(plan.read_slot == (Sizes{2, 3, 0}), boost::test_tools::per_element());  // columns 6 7 8
  BOOST_TEST(plan.position == (std::vector<std::uint32_t>{9}));
  BOOST_TEST(slots_written(plan) == (Sizes{1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_plan_that_is_used_again_forgets_the_step_before) {
  StepPlan plan;
  plan_step(tokens(5), holding({}, 7).get(), plan);
  plan_step(tokens(1), holding(sliding(2, 2), 3).get(), plan);
  const StepPlan fresh = plan_of(tokens(1), holding(sliding(2, 2), 3).get());
  BOOST_TEST(plan.token == fresh.token);
  BOOST_TEST(plan.position == fresh.position);
  BOOST_TEST(plan.read_slot == fresh.read_slot);
  BOOST_TEST(plan.visible == fresh.visible);
  BOOST_TEST(slots_written(plan) == slots_written(fresh));
}

BOOST_AUTO_TEST_CASE(the_logits_that_are_wanted_say_how_many_columns_come_back) {
  ForwardInput input = tokens(3);
  for (const auto& [wanted, columns] : {std::pair{LogitsWanted::all, 3U}, {LogitsWanted::last, 1U}, {LogitsWanted::none, 0U}}) {
    input.logits = wanted;
    BOOST_TEST(logits_columns(plan_of(input, nullptr)) == columns);
  }
}

BOOST_AUTO_TEST_CASE(the_session_shows_the_plan_it_would_run_and_runs_nothing) {
  Cache cache = session().make_cache({});
  session().forward(&cache, call({{1, 2, 3}}));
  const StepPlan plan = session().plan(&cache, call({{4}}));
  BOOST_TEST(plan.past_length == 3U);
  BOOST_TEST(seen(plan) == (Strings{"1111"}), boost::test_tools::per_element());
  BOOST_TEST(cache.length() == 3U);
}

BOOST_AUTO_TEST_SUITE_END()
