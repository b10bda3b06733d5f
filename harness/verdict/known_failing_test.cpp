#include <boost/test/unit_test.hpp>

#include <fmt/format.h>

#include <chrono>

#include "engine/base/error.hpp"
#include "harness/verdict/known_failing.hpp"
#include "harness/verdict/pattern.hpp"

namespace {

namespace kh = kvproof::harness;
using kh::Code;
using kh::EntryState;
using kh::FindingKind;
using kh::Unwritten;

std::string list_of(const std::string& entries) { return R"({"format": "kvproof-known-failing", "version": [1, 0], "entries": [)" + entries + "]}"; }

kh::KnownFailing parsed(const std::string& entries, Unwritten unwritten = Unwritten::refused) {
  return kh::parse_known_failing(list_of(entries), "list.json", unwritten);
}

void refused(const std::string& text, const std::string& says) {
  BOOST_CHECK_EXCEPTION((void)kh::parse_known_failing(text, "list.json", Unwritten::refused), kvproof::DataError, [&](const auto& error) {
    BOOST_TEST_MESSAGE(error.what());
    return std::string_view(error.what()).find(says) != std::string_view::npos;
  });
}

void refused_entry(const std::string& fields, const std::string& says) { refused(list_of("{" + fields + "}"), says); }

kh::LawOutcome outcome(std::string law, std::size_t cases, std::vector<kh::ClassCount> classes = {}) { return {std::move(law), cases, cases, std::move(classes)}; }

kh::KnownFailure entry(std::string law, std::optional<FindingKind> finding = {}, std::optional<Code> code = {}) {
  return {std::move(law), "engine *", finding, code, 100, "why"};
}

EntryState state(const kh::KnownFailure& one, std::vector<kh::LawOutcome> outcomes, const char* backend = "engine 0.1.0") {
  return kh::states_of({{one}}, backend, outcomes).front();
}

const kh::ClassCount kShortMask{{FindingKind::accepts_misuse, Code::mask_length}, 7};

BOOST_AUTO_TEST_SUITE(patterns)

BOOST_AUTO_TEST_CASE(a_star_is_any_run_of_characters) {
  for (const char* pattern : {"mask.refused", "mask.*", "*", "*.refused", "m*k.*d", "mask.refused*", "**", "*mask.refused"})
    BOOST_TEST(kh::matches_pattern(pattern, "mask.refused"), pattern);
  for (const char* pattern : {"", "mask", "mask.refuse", "*.refuse", "Mask.*", "mask.?efused", "m*kd", "*x*", "mask.refusedd", "aba*"})
    BOOST_TEST(!kh::matches_pattern(pattern, "mask.refused"), pattern);
  BOOST_TEST(kh::matches_pattern("*aab", "aaaab"));  // the star must give back what it took
  BOOST_TEST(kh::matches_pattern("", ""));
}

BOOST_AUTO_TEST_CASE(many_stars_take_no_time) {
  std::string pattern;
  for (int i = 0; i < 2000; ++i) pattern += "a*";
  const auto start = std::chrono::steady_clock::now();
  BOOST_TEST(!kh::matches_pattern(pattern + "b", std::string(4000, 'a')));
  BOOST_TEST((std::chrono::steady_clock::now() - start < std::chrono::seconds(5)));
}

BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE(known_failing_file)

BOOST_AUTO_TEST_CASE(what_is_written_is_read_again) {
  const std::string text =
      R"({"law":"mask.refused","backend":"transformers 5.18*","finding":"accepts_misuse","code":"mask_length","traces":40,"reason":"a short mask \"passes\""},)"
      R"({"law":"window.*","backend":"engine 0.1.0","reason":"no window yet"})";
  const kh::KnownFailing list = parsed(text);
  BOOST_REQUIRE(list.entries.size() == 2U);
  BOOST_TEST((list.entries[0].finding == FindingKind::accepts_misuse && list.entries[0].code == Code::mask_length));
  BOOST_TEST(list.entries[0].traces == 40U);
  BOOST_TEST(list.entries[1].traces == 100U);
  BOOST_TEST((!list.entries[1].finding && !list.entries[1].code));
  const std::string again = kh::format_known_failing(list);
  BOOST_TEST(kh::format_known_failing(kh::parse_known_failing(again, "again", Unwritten::refused)) == again);
  BOOST_TEST(again.find("\n  " + text.substr(0, text.find("},{") + 1) + ",\n") != std::string::npos, again);
}

BOOST_AUTO_TEST_CASE(an_empty_list_is_a_list) { BOOST_TEST(parsed("").entries.empty()); }

BOOST_AUTO_TEST_CASE(what_is_no_list_is_refused) {
  refused("", "list.json");
  refused("[]", "a JSON object");
  refused(R"({"format": "kvproof-trace", "version": [1, 0], "entries": []})", "expected \"kvproof-known-failing\"");
  refused(R"({"format": "kvproof-known-failing", "version": [2, 0], "entries": []})", "expected [1, 0]");
  refused(R"({"format": "kvproof-known-failing", "version": [1, 0]})", "\"entries\" is missing");
  refused(R"({"format": "kvproof-known-failing", "version": [1, 0], "entries": [], "extra": 1})", "unknown field \"extra\"");
  refused(R"({"format": "kvproof-known-failing", "version": [1, 0], "entries": [1]})", "entry 0: found 1");
}

BOOST_AUTO_TEST_CASE(what_is_no_entry_is_refused) {
  refused_entry(R"("backend": "engine *", "reason": "x")", "\"law\" is missing");
  refused_entry(R"("law": "mask.refused", "reason": "x")", "\"backend\" is missing");
  refused_entry(R"("law": "mask.refused", "backend": "engine *")", "\"reason\" is missing");
  refused_entry(R"("law": "", "backend": "engine *", "reason": "x")", "law is empty");
  refused_entry(R"("law": "mask.refused", "backend": "", "reason": "x")", "backend is empty");
  refused_entry(R"("law": "mask.refused", "backend": "engine *", "reason": " \n")", "reason is empty");
  refused_entry(R"("law": "mask.refused", "backend": "engine *", "reason": "TODO: say why")", "Write it.");
  refused_entry(R"("law": "mask.refused", "backend": "engine *", "reason": "x", "kind": "wrong_kv")", "unknown field \"kind\"");
  refused_entry(R"("law": "mask.refused", "backend": "engine *", "reason": "x", "finding": "wrong_logit")", "expected a finding");
  refused_entry(R"("law": "mask.refused", "backend": "engine *", "reason": "x", "code": "mask_lenght")", "expected a code");
  refused_entry(R"("law": "mask.refused", "backend": "engine *", "reason": "x", "code": "unknown_cache")", "mend the adapter");
  refused_entry(R"("law": "mask.refused", "backend": "engine *", "reason": "x", "traces": 0)", "traces is 0");
}

BOOST_AUTO_TEST_CASE(an_entry_that_would_expect_almost_anything_is_refused) {
  refused_entry(R"("law": "*", "backend": "engine *", "reason": "x")", "law \"*\" means 45 laws");
  refused_entry(R"("law": "*.*", "backend": "engine *", "reason": "x", "finding": "wrong_logits")", "45 laws");
  refused_entry(R"("law": "mask.refused", "backend": "*", "reason": "x")", "means every backend");
  BOOST_TEST(parsed(R"({"law": "*", "backend": "*", "reason": "x", "finding": "accepts_misuse", "code": "mask_length"})").entries.size() == 1U);
}

BOOST_AUTO_TEST_CASE(two_entries_that_say_the_same_are_refused) {
  const std::string one = R"({"law": "mask.refused", "backend": "engine *", "reason": "x"})", other = R"({"law": "mask.refused", "backend": "engine *", "reason": "y"})";
  refused(list_of(one + "," + other), "entry 1: says the same as entry 0");
}

BOOST_AUTO_TEST_CASE(a_reason_to_be_written_is_kept_for_the_next_writing) {
  BOOST_TEST(parsed(R"({"law": "mask.refused", "backend": "engine *", "reason": "TODO: say why"})", Unwritten::kept).entries.size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE(known_failing_rules)

BOOST_AUTO_TEST_CASE(a_failure_is_expected_by_law_backend_finding_and_code) {
  const kh::KnownFailing list{{entry("mask.*", FindingKind::accepts_misuse, Code::mask_length), entry("window.band")}};
  const auto expected = [&](const char* backend, const char* law, const kh::FindingClass& one) { return kh::expecting(list, backend, law, one) != nullptr; };
  BOOST_TEST(expected("engine 0.1.0", "mask.refused", kShortMask.one));
  BOOST_TEST(!expected("engine 0.1.0", "mask.refused", {FindingKind::accepts_misuse, Code::mask_value}));
  BOOST_TEST(!expected("engine 0.1.0", "mask.refused", {FindingKind::wrong_code, Code::mask_length}));
  BOOST_TEST(!expected("engine 0.1.0", "mask.refused", {FindingKind::accepts_misuse, {}}));
  BOOST_TEST(!expected("engine 0.1.0", "isolation.refusal", kShortMask.one));
  BOOST_TEST(!expected("transformers 5.18.0 eager", "mask.refused", kShortMask.one));
  BOOST_TEST(expected("engine 0.1.0", "window.band", {FindingKind::wrong_logits, {}}));
}

BOOST_AUTO_TEST_CASE(an_entry_is_met_stale_or_cannot_be_told) {
  const kh::KnownFailure one = entry("mask.refused", FindingKind::accepts_misuse, Code::mask_length);
  BOOST_TEST((state(one, {outcome("mask.refused", 100, {kShortMask})}) == EntryState::met));
  BOOST_TEST((state(one, {outcome("mask.refused", 3, {kShortMask})}) == EntryState::met));  // few cases are enough to be met
  BOOST_TEST((state(one, {outcome("mask.refused", 100)}) == EntryState::not_met));
  BOOST_TEST((state(one, {outcome("mask.refused", 100, {{{FindingKind::accepts_misuse, Code::mask_value}, 9}})}) == EntryState::not_met));
  BOOST_TEST((state(one, {outcome("mask.refused", 99)}) == EntryState::too_few));
  BOOST_TEST((state(one, {outcome("mask.holes", 100)}) == EntryState::not_run));
  BOOST_TEST((state(one, {outcome("mask.refused", 100)}, "oracle 1") == EntryState::elsewhere));
  BOOST_TEST((state(one, {{"mask.refused", 100, 0, {}}}) == EntryState::not_covered));
  BOOST_TEST((state(entry("mask.refsued"), {outcome("mask.refused", 100)}) == EntryState::no_law));
  BOOST_TEST((state(entry("mask.refsued"), {outcome("mask.refused", 100)}, "oracle 1") == EntryState::no_law));
}

BOOST_AUTO_TEST_CASE(a_pattern_is_told_only_when_all_its_laws_ran) {
  const kh::KnownFailure one = entry("generate.*", FindingKind::wrong_ids);
  BOOST_TEST((state(one, {outcome("generate.greedy", 100)}) == EntryState::not_run));
  BOOST_TEST((state(one, {outcome("generate.greedy", 100), outcome("generate.caches", 100)}) == EntryState::not_met));
  BOOST_TEST((state(one, {outcome("generate.greedy", 100), outcome("generate.caches", 9)}) == EntryState::too_few));
  BOOST_TEST((state(one, {outcome("generate.greedy", 100, {{{FindingKind::wrong_ids, {}}, 1}})}) == EntryState::met));
}

BOOST_AUTO_TEST_CASE(stale_is_what_would_be_left_out) {
  for (const EntryState kept : {EntryState::met, EntryState::elsewhere, EntryState::not_run, EntryState::too_few}) BOOST_TEST(!kh::is_stale(kept));
  for (const EntryState gone : {EntryState::not_met, EntryState::not_covered, EntryState::no_law}) BOOST_TEST(kh::is_stale(gone));
}

BOOST_AUTO_TEST_CASE(a_rewritten_list_keeps_reasons_drops_the_stale_and_asks_for_new_reasons) {
  kh::KnownFailing list{{entry("mask.refused", FindingKind::accepts_misuse, Code::mask_length), entry("mask.holes"), entry("window.band")}};
  const std::vector<kh::LawOutcome> outcomes{outcome("mask.refused", 40, {kShortMask, {{FindingKind::wrong_code, Code::mask_value}, 2}, {{FindingKind::accepts_misuse, Code::unknown_cache}, 1}}),
                                             outcome("mask.holes", 100)};
  const kh::KnownFailing fresh = kh::rewritten(list, "engine 0.1.0", outcomes);
  BOOST_REQUIRE(fresh.entries.size() == 3U);
  BOOST_TEST(kh::entry_text(fresh.entries[0]) == "mask.refused accepts_misuse mask_length");
  BOOST_TEST(fresh.entries[0].reason == "why");
  BOOST_TEST(kh::entry_text(fresh.entries[1]) == "window.band");  // it did not run
  BOOST_TEST(kh::entry_text(fresh.entries[2]) == "mask.refused wrong_code mask_value");
  BOOST_TEST(fresh.entries[2].backend == "engine 0.1.0");
  BOOST_TEST(fresh.entries[2].traces == 40U);
  refused(kh::format_known_failing(fresh), "Write it.");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
