#include <boost/test/unit_test.hpp>

#include <algorithm>

#include "harness/verdict/judge_ids.hpp"

namespace {

namespace kh = kvproof::harness;
using kvproof::Rows;

const kh::Oracle& oracle() {
  static const auto kOracle = kh::Oracle::open(KVPROOF_SOURCE_DIR "/golden/lively");  // greedy ids that vary
  return *kOracle;
}

/// The ids the oracle itself would choose, and the runner-up of the last.
struct Greedy {
  std::vector<std::int64_t> ids;
  std::int64_t second = 0;
  double gap = 0;  ///< between the last id and the runner-up
};

Greedy greedy(kh::RowHistory row, std::size_t count) {
  Greedy found;
  for (std::size_t i = 0; i < count; ++i) {
    auto logits = oracle().truth(row, {std::vector<std::uint8_t>(row.columns.size(), 1), false}).logits.back();
    const auto best = std::ranges::max_element(logits);
    found.ids.push_back(best - logits.begin());
    const double largest = *best;
    *best = -1e9;
    const auto second = std::ranges::max_element(logits);
    found.second = second - logits.begin();
    found.gap = largest - *second;
    std::vector<std::uint8_t> mask = *row.columns.back().mask;
    mask.push_back(1);
    row.columns.push_back({found.ids.back(), row.columns.back().position + 1, std::make_shared<const std::vector<std::uint8_t>>(std::move(mask))});
  }
  return found;
}

struct Fixture {
  kh::Generate call{.input_ids = {{4, 9, 6}, {0, 3, 8}}, .attention_mask = Rows{{1, 1, 1}, {0, 1, 1}}, .max_new_tokens = 4};
  kh::Outcome outcome = prompt();
  std::vector<Greedy> best{greedy(outcome.rows[0], 4), greedy(outcome.rows[1], 4)};
  Rows ids{best[0].ids, best[1].ids};
  std::optional<Rows> recorded;

  kh::Outcome prompt() const {
    kh::World world({{"main", oracle().facts()}});
    return world.apply(call);
  }
  std::optional<kh::Finding> judged(const kh::Tolerance& tolerance = {}) const { return kh::judge_ids({call, outcome, recorded}, ids, oracle(), tolerance).finding; }

  void require(kh::FindingKind kind, std::string_view words) const {
    const auto finding = judged();
    BOOST_REQUIRE(finding.has_value());
    BOOST_TEST(kh::finding_name(finding->kind) == kh::finding_name(kind));
    BOOST_TEST(finding->message.find(words) != std::string::npos, finding->message << " should speak of " << words);
  }
};

BOOST_FIXTURE_TEST_SUITE(judge_ids, Fixture)

BOOST_AUTO_TEST_CASE(the_oracles_own_ids_pass_padded_or_not) { BOOST_TEST(!judged()); }

BOOST_AUTO_TEST_CASE(each_judged_id_counts_as_a_row_of_its_own) {
  auto hashes = kh::judge_ids({call, outcome, recorded}, ids, oracle(), {}).row_hashes;
  std::ranges::sort(hashes);
  BOOST_TEST(hashes.size() == 8U);
  BOOST_TEST((std::ranges::adjacent_find(hashes) == hashes.end()));
}

BOOST_AUTO_TEST_CASE(an_id_that_is_not_the_best_is_named_with_both_logits) {
  ids[1][2] = (ids[1][2] + 1) % 31;
  require(kh::FindingKind::wrong_ids, "row 1 new token 2: id");
  BOOST_TEST(judged()->message.find("the best is id " + std::to_string(best[1].ids[2])) != std::string::npos);
  BOOST_TEST(judged()->place->column == 2U);
}

BOOST_AUTO_TEST_CASE(an_id_within_twice_the_bound_of_the_best_ties) {
  ids[0][3] = best[0].second;
  const double gap = best[0].gap;
  BOOST_TEST(judged({gap * 0.49, 0}).has_value());
  BOOST_TEST(!judged({gap * 0.51, 0}).has_value());
}

BOOST_AUTO_TEST_CASE(a_derived_tolerance_adds_the_noise_of_the_row) {
  ids[0][3] = best[0].second;
  BOOST_TEST(judged({0, 0, true}).has_value());
  ids = {best[0].ids, best[1].ids};
  BOOST_TEST(!judged({0, 0, true}).has_value());
}

BOOST_AUTO_TEST_CASE(after_a_wrong_id_the_next_is_judged_by_the_history_that_was_fed) {
  ids[0][0] = best[0].ids[0] == 1 ? 2 : 1;
  const auto next = greedy([&] {
    kh::RowHistory row = outcome.rows[0];
    row.columns.push_back({ids[0][0], 3, std::make_shared<const std::vector<std::uint8_t>>(4, std::uint8_t{1})});
    return row;
  }(), 3).ids;
  std::ranges::copy(next, ids[0].begin() + 1);
  BOOST_TEST(judged().has_value());
  BOOST_TEST(!judged({1e3, 0}).has_value());  // a bound under which the first ties too
}

BOOST_AUTO_TEST_CASE(ids_out_of_the_vocabulary_are_named_before_the_oracle_sees_them) {
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{1} << 40U}) {
    ids[0][1] = bad;
    require(kh::FindingKind::wrong_ids, "row 0 new token 1: id " + std::to_string(bad) + " is not in 0..");
  }
}

BOOST_AUTO_TEST_CASE(rows_and_columns_must_be_those_asked_for) {
  ids.pop_back();
  require(kh::FindingKind::wrong_shape, "ids of 1 rows, expected 2");
  ids = {best[0].ids, best[1].ids};
  ids[1].pop_back();
  require(kh::FindingKind::wrong_shape, "a row of 3 new ids, expected 4");
  ids = {{}, {}};
  require(kh::FindingKind::wrong_shape, "a row of 0 new ids, expected 4");
  ids = {};
  require(kh::FindingKind::wrong_shape, "ids of 0 rows");
}

BOOST_AUTO_TEST_CASE(a_row_is_not_judged_after_its_eos) {
  call.eos_token_id = ids[0][1];
  BOOST_REQUIRE(std::ranges::count(ids[1], *call.eos_token_id) == 0);  // or the prompt must be another
  ids[0][2] = ids[0][3] = -5;
  BOOST_TEST(!judged());
}

BOOST_AUTO_TEST_CASE(when_all_rows_have_ended_no_column_follows) {
  call.input_ids.pop_back();
  call.attention_mask->pop_back();
  outcome.rows.pop_back();
  ids.pop_back();
  call.eos_token_id = ids[0][1];
  BOOST_REQUIRE(ids[0][0] != ids[0][1]);  // or the prompt must be another
  require(kh::FindingKind::wrong_shape, "a row of 4 new ids, expected 2");
  ids[0].resize(2);
  BOOST_TEST(!judged());
  ids[0].resize(1);
  require(kh::FindingKind::wrong_shape, "a row of 1 new ids, expected 4");
}

BOOST_AUTO_TEST_CASE(an_eos_beyond_what_was_asked_for_does_not_stretch_the_answer) {
  call.eos_token_id = 30;
  for (auto& row : ids) {
    row.assign(1000, 0);
    row.back() = 30;
  }
  require(kh::FindingKind::wrong_shape, "a row of 1000 new ids, expected 4");
}

BOOST_AUTO_TEST_CASE(recorded_ids_that_are_met_pass) {
  recorded = ids;
  BOOST_TEST(!judged());
}

BOOST_AUTO_TEST_CASE(recorded_ids_that_nothing_justifies_are_a_finding_though_the_answer_is_right) {
  recorded = ids;
  (*recorded)[1][3] = (ids[1][3] + 1) % 31;
  require(kh::FindingKind::wrong_ids, "row 1 new token 3: id");
  BOOST_TEST(judged()->message.find("recorded is id") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(ids_that_tie_with_the_recorded_ones_pass_and_what_follows_is_judged_by_itself) {
  recorded = ids;
  (*recorded)[0][3] = best[0].second;
  BOOST_TEST(!judged({best[0].gap * 0.51, 0}).has_value());
  BOOST_TEST(judged({best[0].gap * 0.49, 0}).has_value());
}

BOOST_AUTO_TEST_CASE(more_ids_than_were_recorded_are_a_finding) {
  recorded = ids;
  (*recorded)[0].resize(2);
  (*recorded)[1].resize(2);
  require(kh::FindingKind::wrong_ids, "row 0: 4 ids, recorded 2");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
