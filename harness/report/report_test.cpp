#include <boost/test/unit_test.hpp>

#include <limits>
#include <nlohmann/json.hpp>

#include "harness/report/jsonl.hpp"
#include "harness/report/text.hpp"

namespace {

namespace kh = kvproof::harness;
using kh::CaseVerdict;
using nlohmann::json;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

kh::Finding wrong_logits(std::size_t step, double got) {
  return {kh::FindingKind::wrong_logits, step, kh::Place{1, 2, 3, got, 0.5, 1e-4}, "row 1 column 2: logit 3 got x, expected 0.5"};
}

/// A case of eight rows, one of which is far off at step 4.
kh::CaseReport failing() {
  kh::CaseReport report{.name = "a.golden.safetensors", .backend = "engine"};
  report.tolerance.source = "file";
  kh::Comparison& numbers = report.judgement.numbers;
  numbers.rows = numbers.top1_rows = 8;
  numbers.top1_agree = 6;
  numbers.top1_undecidable = 1;
  numbers.elements = 8 * 32;
  numbers.worst = 2.5;
  numbers.worst_place = kh::Place{1, 2, 3, 0.75, 0.5, 1e-4};
  numbers.sum_of_squares = 64;
  numbers.worst_kl = 0.125;
  report.judgement.worst_step = 4;
  report.judgement.checks = 6;
  report.judgement.findings.push_back(wrong_logits(4, 0.75));
  report.replay = "kvproof golden verify a.golden.safetensors --backend engine";
  report.verdict = kh::verdict_of(report.judgement);
  return report;
}

kh::CaseReport passing() {
  kh::CaseReport report = failing();
  report.judgement.findings.clear();
  report.verdict = kh::verdict_of(report.judgement);
  return report;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t start = 0, end = 0; (end = text.find('\n', start)) != std::string::npos; start = end + 1) lines.push_back(text.substr(start, end - start));
  return lines;
}

BOOST_AUTO_TEST_SUITE(verdict_of)

BOOST_AUTO_TEST_CASE(a_finding_outweighs_what_was_not_covered_and_an_empty_comparison) {
  kh::Judgement judgement;
  judgement.findings.push_back(wrong_logits(0, 0));
  judgement.not_covered = "step 1: no";
  BOOST_TEST((kh::verdict_of(judgement) == CaseVerdict::fail));
}

BOOST_AUTO_TEST_CASE(not_covered_outweighs_a_pass) {
  kh::Judgement judgement;
  judgement.numbers.rows = 5;
  judgement.not_covered = "step 1: no";
  BOOST_TEST((kh::verdict_of(judgement) == CaseVerdict::not_covered));
}

BOOST_AUTO_TEST_CASE(nothing_compared_is_no_pass_however_many_checks) {
  kh::Judgement judgement;
  judgement.checks = 100;
  BOOST_TEST((kh::verdict_of(judgement) == CaseVerdict::nothing_compared));
  judgement.numbers.rows = 1;
  BOOST_TEST((kh::verdict_of(judgement) == CaseVerdict::pass));
}

BOOST_AUTO_TEST_CASE(every_verdict_has_a_name_of_its_own) {
  BOOST_TEST(kh::verdict_name(CaseVerdict::pass) == "pass");
  BOOST_TEST(kh::verdict_name(CaseVerdict::fail) == "fail");
  BOOST_TEST(kh::verdict_name(CaseVerdict::not_covered) == "not_covered");
  BOOST_TEST(kh::verdict_name(CaseVerdict::nothing_compared) == "nothing_compared");
  BOOST_TEST(kh::verdict_name(CaseVerdict::corrupt) == "corrupt");
  BOOST_TEST(kh::verdict_name(CaseVerdict::no_verdict) == "no_verdict");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(text)

BOOST_AUTO_TEST_CASE(a_pass_is_one_line_with_worst_spread_and_tolerance) {
  BOOST_TEST(kh::case_text(passing()) ==
             "ok   a.golden.safetensors: 8 rows compared, worst 2.5 of the bound (step 4 row 1 column 2 element 3), rms 0.5, kl 0.12, top-1 6 of 8 (1 undecidable); "
             "atol 1e-05, rtol 0.0001 (file)\n");
}

BOOST_AUTO_TEST_CASE(a_failure_names_the_first_wrong_step_and_ends_with_its_replay) {
  const auto lines = lines_of(kh::case_text(failing()));
  BOOST_REQUIRE(lines.size() == 3U);
  BOOST_TEST(lines[0] == "FAIL a.golden.safetensors: wrong_logits at step 4: row 1 column 2: logit 3 got x, expected 0.5");
  BOOST_TEST(lines[1].find("8 rows compared") != std::string::npos);
  BOOST_TEST(lines[2] == "     replay: kvproof golden verify a.golden.safetensors --backend engine");
}

BOOST_AUTO_TEST_CASE(later_steps_are_counted_once_each) {
  kh::CaseReport report = failing();
  report.judgement.findings.push_back(wrong_logits(4, 1));
  BOOST_TEST(kh::case_text(report).find("later") == std::string::npos);
  report.judgement.findings.push_back(wrong_logits(5, 1));
  report.judgement.findings.push_back(wrong_logits(5, 1));
  BOOST_TEST(kh::case_text(report).find("and 1 later step is wrong too") != std::string::npos);
  report.judgement.findings.push_back(wrong_logits(7, 1));
  BOOST_TEST(kh::case_text(report).find("and 2 later steps are wrong too") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_case_without_verdict_says_why) {
  kh::CaseReport report = passing();
  report.reason = "a.golden.safetensors: truncated";
  report.verdict = CaseVerdict::corrupt;
  BOOST_TEST(kh::case_text(report) == "CORRUPT a.golden.safetensors: truncated\n");
  report.verdict = CaseVerdict::no_verdict;
  BOOST_TEST(kh::case_text(report) == "NO VERDICT a.golden.safetensors: truncated\n");
  report.verdict = CaseVerdict::nothing_compared;
  BOOST_TEST(kh::case_text(report) == "NOTHING COMPARED a.golden.safetensors: 6 checks, no number\n");
  report.reason = "op read";
  report.verdict = CaseVerdict::not_covered;
  BOOST_TEST(kh::case_text(report) == "not covered a.golden.safetensors: op read\n");
  report.reason.clear();
  report.judgement.not_covered = "step 1: no padding";
  BOOST_TEST(kh::case_text(report) == "not covered a.golden.safetensors: step 1: no padding\n");
}

BOOST_AUTO_TEST_CASE(where_only_ids_were_compared_no_number_is_claimed) {
  kh::Judgement judgement;
  BOOST_TEST(kh::worst_text(judgement) == "no numbers");
  judgement.numbers.rows = 3;
  BOOST_TEST(kh::worst_text(judgement) == "ids only");
  BOOST_TEST(kh::spread_text(judgement.numbers) == "");
}

BOOST_AUTO_TEST_CASE(the_tolerance_says_where_it_comes_from) {
  BOOST_TEST(kh::tolerance_text({}) == "atol 1e-05, rtol 0.0001 (default)");
  BOOST_TEST(kh::tolerance_text({1e-9, 0, true, "command line"}) == "atol 1e-09, rtol 0, + 8 x noise (command line)");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(jsonl)

BOOST_AUTO_TEST_CASE(a_case_is_one_line_of_json_with_everything_in_it) {
  const std::string line = kh::case_jsonl(failing());
  BOOST_TEST(line.find('\n') == line.size() - 1);
  const json report = json::parse(line);
  BOOST_TEST(report["case"] == "a.golden.safetensors");
  BOOST_TEST(report["verdict"] == "fail");
  BOOST_TEST(report["tolerance"]["source"] == "file");
  BOOST_TEST(report["rows"] == 8);
  BOOST_TEST(report["checks"] == 6);
  BOOST_TEST(report["worst"] == 2.5);
  BOOST_TEST(report["worst_at"] == (json{{"step", 4}, {"row", 1}, {"column", 2}, {"element", 3}}));
  BOOST_TEST(report["rms"] == 0.5);
  BOOST_TEST(report["kl"] == 0.125);
  BOOST_TEST(report["top1"] == (json{{"rows", 8}, {"agree", 6}, {"undecidable", 1}}));
  BOOST_REQUIRE(report["findings"].size() == 1U);
  BOOST_TEST(report["findings"][0]["kind"] == "wrong_logits");
  BOOST_TEST(report["findings"][0]["step"] == 4);
  BOOST_TEST(report["findings"][0]["got"] == 0.75);
  BOOST_TEST(report["findings"][0]["expected"] == 0.5);
  BOOST_TEST(report["replay"] == failing().replay);
}

BOOST_AUTO_TEST_CASE(numbers_that_json_cannot_say_are_words) {
  kh::CaseReport report = failing();
  report.judgement.numbers.worst = report.judgement.numbers.worst_kl = kInfinity;
  report.judgement.numbers.sum_of_squares = kNaN;
  report.judgement.findings = {wrong_logits(4, kNaN), wrong_logits(5, -kInfinity)};
  const json line = json::parse(kh::case_jsonl(report));
  BOOST_TEST(line["worst"] == "inf");
  BOOST_TEST(line["kl"] == "inf");
  BOOST_TEST(line["rms"] == "nan");
  BOOST_TEST(line["findings"][0]["got"] == "nan");
  BOOST_TEST(line["findings"][1]["got"] == "-inf");
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_text_do_not_break_the_line) {
  kh::CaseReport report = failing();
  report.name = "\xff\n\"";
  report.judgement.findings[0].message = "\x80";
  BOOST_TEST(json::parse(kh::case_jsonl(report)).contains("replay"));
}

BOOST_AUTO_TEST_CASE(a_case_without_numbers_claims_none) {
  kh::CaseReport report{.name = "a", .backend = "engine"};
  report.verdict = CaseVerdict::not_covered;
  report.judgement.not_covered = "step 0: no";
  const json line = json::parse(kh::case_jsonl(report));
  BOOST_TEST(line["rows"] == 0);
  BOOST_TEST(line["reason"] == "step 0: no");
  BOOST_TEST(!line.contains("worst"));
  BOOST_TEST(!line.contains("rms"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
