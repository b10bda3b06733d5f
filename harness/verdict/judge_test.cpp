#include <boost/test/unit_test.hpp>

#include <fmt/format.h>

#include <cmath>
#include <functional>

#include "harness/verdict/judge.hpp"

namespace {

namespace kh = kvproof::harness;
using kh::FindingKind;

constexpr const char* kModel = KVPROOF_SOURCE_DIR "/golden/seed";

const kh::Oracles& oracles() {
  static const kh::Oracles kOracles{{"main", kh::Oracle::open(kModel)}};
  return kOracles;
}

/// A prefill with a pad, a length, a read, a refused call, a generation: each kind of answer once.
kh::Trace trace() {
  kh::Trace trace;
  const auto add = [&](kh::Call call) { trace.push_back({std::move(call), std::nullopt, std::nullopt, 0}); };
  add(kh::NewCache{.cache = "a", .kind = "dynamic"});
  add(kh::Forward{.cache = "a", .input_ids = {{9, 4, 9}, {4, 9, 6}}, .attention_mask = kvproof::Rows{{0, 1, 1}, {1, 1, 1}}});
  add(kh::Length{"a"});
  add(kh::Read{"a", 1});
  add(kh::Forward{.cache = "a", .input_ids = {{7}, {7}}, .attention_mask = kvproof::Rows{{1}, {1}}});
  add(kh::Generate{.input_ids = {{4, 9, 6}}, .max_new_tokens = 2});
  return trace;
}
enum Step : std::size_t { kNew, kForward, kLength, kRead, kRefused, kGenerate };

/// What the oracle itself would answer, to be bent by a test.
kh::Observations truth(const std::vector<kh::Expectation>& expected) {
  kh::Observations seen;
  for (const kh::Expectation& each : expected) {
    if (each.outcome.refusal) {
      seen.push_back({*each.outcome.refusal});
      continue;
    }
    kh::Answer answer;
    answer.length = each.outcome.length;
    if (each.numbers) {
      answer.logits = each.numbers->logits;
      answer.keys = each.numbers->keys;
      answer.values = each.numbers->values;
    }
    seen.push_back({answer});
  }
  std::get<kh::Answer>(*seen[kGenerate].reply).ids = kvproof::Rows{};
  return seen;
}

using Bend = std::function<void(kh::Observations&)>;

kh::Judgement judged(const Bend& bend, const kh::Capabilities& capabilities = {}) {
  const kh::Trace played = trace();
  const auto expected = kh::expect_from_oracle(played, oracles(), false);
  kh::Observations seen = truth(expected);
  // The ids are the oracle's own: the best next token, twice.
  kvproof::Rows ids(1);
  kh::RowHistory row = expected[kGenerate].outcome.rows[0];
  for (std::size_t i = 0; i < 2; ++i) {
    const auto logits = oracles().at("main")->truth(row, {std::vector<std::uint8_t>(row.columns.size(), 1), false}).logits.back();
    ids[0].push_back(std::max_element(logits.begin(), logits.end()) - logits.begin());
    std::vector<std::uint8_t> mask(row.columns.size() + 1, 1);
    row.columns.push_back({ids[0].back(), row.columns.back().position + 1, std::make_shared<const std::vector<std::uint8_t>>(mask)});
  }
  std::get<kh::Answer>(*seen[kGenerate].reply).ids = ids;
  bend(seen);
  return kh::judge(played, expected, seen, {capabilities, {}, oracles()});
}

kh::Answer& answer(kh::Observations& seen, std::size_t step) { return std::get<kh::Answer>(*seen[step].reply); }

/// Exactly one finding, of this kind at this step, whose message holds `words`.
void require_one(const kh::Judgement& judgement, FindingKind kind, std::size_t step, std::string_view words) {
  BOOST_REQUIRE(judgement.findings.size() == 1U);
  const kh::Finding& finding = judgement.findings.front();
  BOOST_TEST(kh::finding_name(finding.kind) == kh::finding_name(kind));
  BOOST_TEST(finding.step == step);
  BOOST_TEST(finding.message.find(words) != std::string::npos, finding.message << " should speak of " << words);
}

BOOST_AUTO_TEST_SUITE(judge)

BOOST_AUTO_TEST_CASE(right_answers_pass_and_are_counted) {
  const auto judgement = judged([](kh::Observations&) {});
  BOOST_TEST(judgement.passed());
  BOOST_TEST(judgement.checks == 6U);
  BOOST_TEST(judgement.numbers.rows == 5U + 2U * 5U + 1U);  // logits: 5 of 6 columns; keys and values: the same 5; one row of ids
  BOOST_TEST(judgement.numbers.top1_rows == 5U);
  BOOST_TEST(!judgement.not_covered);
}

BOOST_AUTO_TEST_CASE(wrong_logits_are_named_with_their_place) {
  const auto judgement = judged([](kh::Observations& seen) { answer(seen, kForward).logits->values[4 * 32 + 5] += 1; });
  require_one(judgement, FindingKind::wrong_logits, kForward, "row 1 column 1: logit 5 got");
  BOOST_TEST(judgement.findings[0].message.find("1 of 32 differ") != std::string::npos);
  BOOST_TEST(judgement.worst_step == kForward);
  BOOST_TEST(judgement.numbers.worst > 1);
}

BOOST_AUTO_TEST_CASE(a_hidden_query_may_answer_anything_finite) {
  BOOST_TEST(judged([](kh::Observations& seen) { answer(seen, kForward).logits->values[0] += 1; }).passed());
  for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL})
    require_one(judged([&](kh::Observations& seen) { answer(seen, kForward).logits->values[3] = bad; }), FindingKind::non_finite, kForward,
                "row 0 column 0: logit 3 is");
}

BOOST_AUTO_TEST_CASE(a_nan_that_counts_is_both_not_finite_and_wrong) {
  const auto judgement = judged([](kh::Observations& seen) { answer(seen, kForward).logits->values[5 * 32] = std::nan(""); });
  BOOST_REQUIRE(judgement.findings.size() == 2U);
  BOOST_TEST((judgement.findings[0].kind == FindingKind::non_finite));
  BOOST_TEST((judgement.findings[1].kind == FindingKind::wrong_logits));
}

BOOST_AUTO_TEST_CASE(wrong_keys_and_wrong_values_are_named) {
  const std::size_t heads = 2, dim = 16;  // of golden/seed; keys [B 2, H 2, S 3, D 16]
  const std::size_t of_row_1_head_1_column_1 = ((heads + 1) * 3 + 1) * dim;
  const auto bend = [&](std::optional<kh::Tensor> kh::Answer::*part) {
    return [=](kh::Observations& seen) { (answer(seen, kRead).*part)->values.at(of_row_1_head_1_column_1 + 3) += 1; };
  };
  require_one(judged(bend(&kh::Answer::keys)), FindingKind::wrong_kv, kRead, fmt::format("row 1 column 1: key {} got", dim + 3));
  require_one(judged(bend(&kh::Answer::values)), FindingKind::wrong_kv, kRead, fmt::format("row 1 column 1: value {} got", dim + 3));
}

BOOST_AUTO_TEST_CASE(keys_of_a_hidden_column_are_not_compared) {
  BOOST_TEST(judged([](kh::Observations& seen) { answer(seen, kRead).keys->values[0] = std::nan(""); }).passed());
}

BOOST_AUTO_TEST_CASE(shapes_that_nobody_asked_for_are_findings) {
  require_one(judged([](kh::Observations& seen) { answer(seen, kForward).logits->shape = {2, 32, 3}; }), FindingKind::wrong_shape, kForward,
              "logits: shape [2, 32, 3] with 192 numbers, expected shape [2, 3, 32] with 192");
  require_one(judged([](kh::Observations& seen) { answer(seen, kForward).logits.reset(); }), FindingKind::wrong_shape, kForward, "logits: none, expected");
  require_one(judged([](kh::Observations& seen) { answer(seen, kNew).logits = kh::Tensor{{1, 1, 1}, {0}}; }), FindingKind::wrong_shape, kNew, "expected none");
  require_one(judged([](kh::Observations& seen) { answer(seen, kRead).values.reset(); }), FindingKind::wrong_shape, kRead, "values: none");
  require_one(judged([](kh::Observations& seen) { answer(seen, kLength).length.reset(); }), FindingKind::wrong_shape, kLength, "no length");
  require_one(judged([](kh::Observations& seen) { answer(seen, kGenerate).ids.reset(); }), FindingKind::wrong_shape, kGenerate, "no ids");
}

BOOST_AUTO_TEST_CASE(fewer_numbers_than_the_shape_says_are_never_read) {
  require_one(judged([](kh::Observations& seen) { answer(seen, kForward).logits->values.resize(7); }), FindingKind::wrong_shape, kForward, "with 7 numbers");
}

BOOST_AUTO_TEST_CASE(a_wrong_length_is_a_finding) {
  require_one(judged([](kh::Observations& seen) { answer(seen, kLength).length = 4; }), FindingKind::wrong_length, kLength, "length 4, expected 3");
}

BOOST_AUTO_TEST_CASE(wrong_ids_are_a_finding) {
  require_one(judged([](kh::Observations& seen) { (*answer(seen, kGenerate).ids)[0][1] = 32; }), FindingKind::wrong_ids, kGenerate, "id 32 is not in 0..31");
}

BOOST_AUTO_TEST_CASE(accepting_what_the_contract_refuses_is_a_finding) {
  require_one(judged([](kh::Observations& seen) { seen[kRefused].reply = kh::Answer{}; }), FindingKind::accepts_misuse, kRefused, "expected mask_length");
}

BOOST_AUTO_TEST_CASE(refusing_what_the_contract_allows_is_a_finding) {
  require_one(judged([](kh::Observations& seen) { seen[kForward].reply = kh::Refusal{kh::Code::capacity, "full"}; }), FindingKind::refuses_valid, kForward,
              "refused as capacity (full)");
}

BOOST_AUTO_TEST_CASE(another_code_is_a_finding_unless_the_backend_has_none) {
  const auto bend = [](kh::Code code) { return [code](kh::Observations& seen) { seen[kRefused].reply = kh::Refusal{code, "no"}; }; };
  kh::Capabilities without_codes;
  without_codes.codes = false;
  require_one(judged(bend(kh::Code::mask_value)), FindingKind::wrong_code, kRefused, "refused as mask_value (no), expected mask_length");
  require_one(judged(bend(kh::Code::other)), FindingKind::wrong_code, kRefused, "refused as other");
  BOOST_TEST(judged(bend(kh::Code::other), without_codes).passed());
  BOOST_TEST(judged(bend(kh::Code::mask_value), without_codes).passed());
}

BOOST_AUTO_TEST_CASE(a_breakdown_is_a_finding_and_what_was_not_played_is_not_judged) {
  const auto judgement = judged([](kh::Observations& seen) {
    seen[kRead].reply = kh::Breakdown{"crashed", "signal 11"};
    for (std::size_t step = kRead + 1; step < seen.size(); ++step) seen[step].reply.reset();
  });
  require_one(judgement, FindingKind::broke_down, kRead, "crashed: signal 11");
  BOOST_TEST(judgement.checks == 4U);
}

BOOST_AUTO_TEST_CASE(nothing_is_judged_from_the_first_unsupported_step_on) {
  const auto judgement = judged([](kh::Observations& seen) {
    seen[kForward].reply = kh::Unsupported{"no padding"};
    seen[kLength].reply = kh::Refusal{kh::Code::unknown_cache, ""};
    seen[kRead].reply = kh::Unsupported{"no read"};
  });
  BOOST_TEST(judgement.passed());
  BOOST_TEST(judgement.not_covered.value_or("") == "step 1: no padding");
  BOOST_TEST(judgement.checks == 1U);
}

BOOST_AUTO_TEST_CASE(findings_keep_the_order_of_their_steps) {
  const auto judgement = judged([](kh::Observations& seen) {
    answer(seen, kLength).length = 9;
    answer(seen, kForward).logits->values[5 * 32] += 1;
    seen[kRefused].reply = kh::Answer{};
  });
  BOOST_REQUIRE(judgement.findings.size() == 3U);
  BOOST_TEST(judgement.findings[0].step == kForward);
  BOOST_TEST(judgement.findings[1].step == kLength);
  BOOST_TEST(judgement.findings[2].step == kRefused);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
