#include "engine/forward/key_runs.hpp"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <string>

using namespace kvproof;

namespace {

/// A plan of one row whose visibility is drawn: one string per query, one character per key, 'x' = seen.
StepPlan drawn(std::vector<std::size_t> read_slot, const std::vector<std::string>& picture) {
  StepPlan plan;
  plan.batch = 1;
  plan.new_columns = picture.size();
  plan.read_slot = std::move(read_slot);
  for (const std::string& line : picture)
    for (const char key : line) plan.visible.push_back(key == 'x' ? 1 : 0);
  return plan;
}

/// Runs as text: c2+3! = three cached keys from slot 2 seen by all, n0+1? = one new key from column 0 seen by some.
std::string runs_of(const StepPlan& plan, const QueryBlock& block) {
  std::vector<KeyRun> runs;
  find_key_runs(plan, block, runs);
  std::string text;
  for (const KeyRun& run : runs)
    text += fmt::format("{}{}{}+{}{}", text.empty() ? "" : " ", run.in_cache ? 'c' : 'n', run.place, run.count, run.seen_by_all ? '!' : '?');
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(key_runs)

BOOST_AUTO_TEST_CASE(one_query_sees_all_or_nothing_of_a_key) {
  BOOST_TEST(runs_of(drawn({0, 1, 2, 3}, {"x..xx"}), {0, 0, 1}) == "c0+1! c3+1! n0+1!");
}

BOOST_AUTO_TEST_CASE(a_causal_chunk_shares_the_past_and_its_first_key) {
  BOOST_TEST(runs_of(drawn({0, 1}, {"xxx..", "xxxx.", "xxxxx"}), {0, 0, 3}) == "c0+2! n0+1! n1+2?");
}

BOOST_AUTO_TEST_CASE(a_wrapped_ring_is_two_runs) {
  BOOST_TEST(runs_of(drawn({2, 3, 0, 1}, {"xxxxx"}), {0, 0, 1}) == "c2+2! c0+2! n0+1!");
}

BOOST_AUTO_TEST_CASE(a_window_sliding_through_the_block_is_seen_by_some) {
  BOOST_TEST(runs_of(drawn({5, 6}, {"xxx..", ".xxx.", "..xxx"}), {0, 0, 3}) == "c5+2? n0+1! n1+2?");
}

BOOST_AUTO_TEST_CASE(a_block_looks_at_its_own_queries_only) {
  const StepPlan plan = drawn({}, {"x...", "xx..", "xxx.", "xxxx"});
  BOOST_TEST(runs_of(plan, {0, 0, 2}) == "n0+1! n1+1?");
  BOOST_TEST(runs_of(plan, {0, 2, 2}) == "n0+3! n3+1?");
}

BOOST_AUTO_TEST_CASE(a_query_that_sees_nothing_has_no_run) { BOOST_TEST(runs_of(drawn({0, 1}, {"..."}), {0, 0, 1}).empty()); }

BOOST_AUTO_TEST_SUITE_END()
