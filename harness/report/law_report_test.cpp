#include <boost/test/unit_test.hpp>
#include <limits>
#include <nlohmann/json.hpp>

#include "harness/report/known_list.hpp"
#include "harness/report/law_table.hpp"

using namespace kvproof::harness;

BOOST_AUTO_TEST_SUITE(law_report)

namespace {

LawReport judged(std::string law) { return {.law = std::move(law), .traces = 80, .rows = 1234, .checks = 99, .worst = 0.2571, .seconds = 1.5}; }

LawReport failing() {
  LawReport law = judged("window.chunking");
  law.worst = std::numeric_limits<double>::quiet_NaN();
  CaseReport report{.name = "window.chunking 17", .backend = "engine"};
  report.verdict = CaseVerdict::fail;
  report.replay = "kvproof replay x.trace.json --backend engine";
  report.judgement.findings.push_back({FindingKind::wrong_logits, 4, Place{1, 0, 12, 0.25, -1.5, 1.6e-4}, "logit 12 got 0.25, expected -1.5"});
  law.failures.push_back(report);
  law.failed = 3;
  return law;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_law_passes_only_if_something_was_judged) {
  BOOST_CHECK(verdict_of(judged("a.b")) == CaseVerdict::pass);
  BOOST_CHECK(verdict_of(failing()) == CaseVerdict::fail);
  BOOST_CHECK(verdict_of(LawReport{.law = "a.b"}) == CaseVerdict::nothing_compared);
  BOOST_CHECK(verdict_of(LawReport{.law = "a.b", .traces = 4}) == CaseVerdict::nothing_compared);
  BOOST_CHECK(verdict_of(LawReport{.law = "a.b", .not_covered = {{"op read", 4}}}) == CaseVerdict::not_covered);
  BOOST_CHECK(verdict_of(LawReport{.law = "mask.refused", .traces = 4, .checks = 9}) == CaseVerdict::pass);
  BOOST_CHECK(verdict_of(LawReport{.law = "a.b", .traces = 4, .rows = 2, .failed = 1}) == CaseVerdict::fail);  // failures need not all be shown
}

BOOST_AUTO_TEST_CASE(the_family_is_the_word_before_the_point) {
  BOOST_TEST(family_of("window.chunking") == "window");
  BOOST_TEST(family_of("odd") == "odd");
}

BOOST_AUTO_TEST_CASE(the_table_is_aligned_and_no_line_ends_in_blanks) {
  std::vector<LawReport> laws{judged("length.grows"), failing(), {.law = "isolation.threads", .not_covered = {{"threads", 78}, {"op read", 2}}}};
  BOOST_TEST(law_table_text(laws) ==
             "law                traces  rows  worst  verdict      not covered\n"
             "length.grows           80  1234  0.257  pass\n"
             "window.chunking        80  1234    nan  FAIL\n"
             "isolation.threads       0     0      -  not covered  80 (threads, and 1 other reason)\n");
}

BOOST_AUTO_TEST_CASE(a_json_line_holds_the_failures_and_only_finite_numbers) {
  const CheckRun run{.seed = 7, .backend = "engine"};
  const std::string line = law_jsonl(run, failing());
  BOOST_TEST(line.find('\n') == line.size() - 1);
  const auto json = nlohmann::json::parse(line);
  BOOST_TEST(json["law"] == "window.chunking");
  BOOST_TEST(json["verdict"] == "fail");
  BOOST_TEST(json["worst"] == "nan");
  BOOST_TEST(json["failed"] == 3);
  BOOST_TEST(json["failures"][0]["findings"][0]["step"] == 4);
  BOOST_TEST(json["seconds"] == 1.5);
}

BOOST_AUTO_TEST_CASE(a_law_that_fails_only_as_expected_is_known_failing) {
  LawReport law = judged("mask.refused");
  law.known = {{{FindingKind::accepts_misuse, Code::mask_length}, 7, "why"}};
  law.failed = law.known_failed = 7;
  BOOST_CHECK(verdict_of(law) == CaseVerdict::known_failing);
  const auto json = nlohmann::json::parse(law_jsonl({.seed = 7, .backend = "exec:x", .engine = "x 1.0"}, law));
  BOOST_TEST(json["verdict"] == "known_failing");
  BOOST_TEST(json["engine"] == "x 1.0");
  BOOST_TEST(json["known"][0].dump() == R"({"code":"mask_length","kind":"accepts_misuse","reason":"why","traces":7})");
  law.failed = 8;  // one more than expected
  BOOST_CHECK(verdict_of(law) == CaseVerdict::fail);
}

BOOST_AUTO_TEST_CASE(a_failure_says_kind_code_how_often_and_where_its_trace_is) {
  LawReport law = failing();
  law.failures.front().traces = 3;
  law.failures.front().file = "x.trace.json";
  law.ways_left = 2;
  LawReport about = law;
  about.failures.front().judgement.findings.front().code = Code::capacity;
  const auto json = nlohmann::json::parse(law_jsonl({}, law)), of_code = nlohmann::json::parse(law_jsonl({}, about));
  BOOST_TEST(json["failures"][0]["kind"] == "wrong_logits");
  BOOST_TEST(json["failures"][0]["code"].is_null());
  BOOST_TEST(json["failures"][0]["traces"] == 3);
  BOOST_TEST(json["failures"][0]["file"] == "x.trace.json");
  BOOST_TEST(json["ways_left"] == 2);
  BOOST_TEST(of_code["failures"][0]["code"] == "capacity");
  BOOST_TEST(of_code["failures"][0]["findings"][0]["code"] == "capacity");
}

BOOST_AUTO_TEST_CASE(a_list_says_what_became_of_it) {
  const KnownFailing list{{{"mask.refused", "x *", FindingKind::accepts_misuse, Code::mask_length, 100, "why"}, {"mask.holes", "x *", {}, {}, 100, "why"},
                           {"mask.hols", "x *", {}, {}, 100, "why"}, {"mask.holes", "y *", {}, {}, 100, "why"}, {"mask.causal", "x *", {}, {}, 100, "why"}}};
  const std::vector<LawOutcome> outcomes{{"mask.refused", 100, 100, {{{FindingKind::accepts_misuse, Code::mask_length}, 1}}}, {"mask.holes", 100, 100, {}}};
  ListReport report = report_of(list, "x 1.0", outcomes);
  report.file = "list.json";
  BOOST_TEST(list_text(report) ==
             "unexpected pass: entry 1 (mask.holes, backend \"x *\"): nothing failed so\n"
             "stale: entry 2 (mask.hols, backend \"x *\"): no law is called so; see kvproof check --list\n"
             "list.json: 1 of 4 known failures of x 1.0 met, 1 that this run is too small to tell, 2 with no place in the list; 1 about other backends\n");
  const auto json = nlohmann::json::parse(list_jsonl(report));
  BOOST_TEST(json["problems"].size() == 2U);
  BOOST_TEST(json["problems"][1]["law"] == "mask.hols");
  BOOST_TEST(json["met"] == 1);
}

BOOST_AUTO_TEST_CASE(without_times_no_line_holds_one) {
  const CheckRun run{.seed = 7, .backend = "engine", .tolerance = {}, .times = false};
  BOOST_TEST(!nlohmann::json::parse(law_jsonl(run, judged("a.b"))).contains("seconds"));
}

BOOST_AUTO_TEST_SUITE_END()
