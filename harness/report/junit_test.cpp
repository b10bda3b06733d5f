#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <pugixml.hpp>

#include "harness/report/junit.hpp"
#include "harness/runner/model_folders.hpp"

using namespace kvproof::harness;

BOOST_AUTO_TEST_SUITE(junit)

namespace {

CaseReport failing_case(const std::string& message) {
  CaseReport report{.name = "window.chunking 17", .backend = "engine"};
  report.verdict = CaseVerdict::fail;
  report.replay = "kvproof replay window-chunking-17.trace.json --backend engine";
  report.judgement.findings.push_back({FindingKind::wrong_logits, 4, Place{1, 0, 12, 0.25, -1.5, 1.6e-4}, message});
  return report;
}

/// Two families: passes, partly and wholly not covered, failing, judging nothing.
std::vector<LawReport> laws() {
  return {{.law = "length.grows", .traces = 80, .rows = 1234, .worst = 0.25, .seconds = 0.5},
          {.law = "length.rows", .traces = 60, .rows = 70, .worst = 0.125, .not_covered = {{"op read", 20}}, .seconds = 0.25},
          {.law = "window.band", .not_covered = {{"kind static_sliding_window", 80}}},
          {.law = "window.chunking", .traces = 80, .rows = 9, .worst = std::numeric_limits<double>::quiet_NaN(), .failures = {failing_case("logit 12 is <&> \"odd\"")}, .failed = 2, .seconds = 2},
          {.law = "window.crop", .traces = 4}};
}

CheckRun run() { return {.seed = 7, .backend = "exec:python3 a.py --x <y>", .tolerance = {}, .times = true, .started = "2026-11-29T17:06:00"}; }

pugi::xml_document parsed(const std::string& text) {
  pugi::xml_document document;
  const auto result = document.load_buffer(text.data(), text.size());
  BOOST_REQUIRE_MESSAGE(result, result.description());
  return document;
}

std::string property(pugi::xml_node suite, const char* name) {
  return suite.child("properties").find_child_by_attribute("property", "name", name).attribute("value").value();
}

/// Whether xmllint finds `text` valid against junit.xsd.
bool valid(const std::string& text) {
  TemporaryFolder folder;
  const std::string file = (folder.path() / "report.xml").string();
  std::ofstream(file) << text;
  return std::system((KVPROOF_XMLLINT " --noout --nonet --schema '" KVPROOF_SOURCE_DIR "/harness/report/junit.xsd' '" + file + "' 2>/dev/null").c_str()) == 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_family_is_a_suite_and_a_law_is_a_case) {
  const auto document = parsed(junit_xml(run(), laws()));
  const auto length = document.child("testsuites").first_child(), window = length.next_sibling();
  BOOST_TEST(!window.next_sibling());
  BOOST_TEST(length.attribute("name").value() == "length");
  BOOST_TEST(length.attribute("tests").as_int() == 2);
  BOOST_TEST(length.attribute("failures").as_int() == 0);
  BOOST_TEST(length.attribute("time").value() == "0.750");
  BOOST_TEST(length.child("testcase").attribute("name").value() == "length.grows");
  BOOST_TEST(length.child("testcase").attribute("classname").value() == "kvproof.length");
  BOOST_TEST(window.attribute("id").as_int() == 1);
  BOOST_TEST(window.attribute("tests").as_int() == 3);
  BOOST_TEST(window.attribute("failures").as_int() == 1);
  BOOST_TEST(window.attribute("errors").as_int() == 1);
  BOOST_TEST(window.attribute("skipped").as_int() == 1);
}

/// A law that fails only as expected, one that also fails otherwise, and a list with an entry that is stale.
std::vector<LawReport> expected_laws() {
  LawReport known{.law = "mask.refused", .traces = 80, .rows = 9, .failed = 7, .known = {{{FindingKind::accepts_misuse, Code::mask_length}, 7, "a \"short\" mask <passes>"}}, .known_failed = 7};
  LawReport both = known;
  both.law = "mask.holes";
  both.failed = 9;
  both.failures = {failing_case("logit 12")};
  return {known, both};
}

ListReport stale_list() {
  ListReport list{.file = "list.json", .engine = "engine 0.1.0", .rewrite = "kvproof check --write-known-failing list.json", .entries = 3, .met = 2};
  list.problems.push_back({2, EntryState::no_law, {"mask.<odd>", "engine *", FindingKind::wrong_logits, {}, 100, "why"}});
  return list;
}

BOOST_AUTO_TEST_CASE(what_is_known_to_fail_is_skipped_and_the_list_is_a_suite) {
  const ListReport list = stale_list();
  const auto document = parsed(junit_xml(run(), expected_laws(), &list));
  const auto mask = document.child("testsuites").first_child(), suite = mask.next_sibling();
  BOOST_TEST(mask.attribute("skipped").as_int() == 1);
  BOOST_TEST(mask.attribute("failures").as_int() == 1);
  BOOST_TEST(mask.child("testcase").child("skipped").attribute("message").value() ==
             "known failing: accepts_misuse mask_length (7 traces): a \"short\" mask <passes>");
  BOOST_TEST(mask.child("testcase").next_sibling("testcase").child("failure").attribute("type").value() == "wrong_logits");
  BOOST_TEST(suite.attribute("name").value() == "known_failing");
  BOOST_TEST(suite.attribute("id").as_int() == 1);
  BOOST_TEST(suite.attribute("failures").as_int() == 1);
  BOOST_TEST(suite.child("testcase").child("failure").attribute("message").value() ==
             "stale: entry 2 (mask.<odd> wrong_logits, backend \"engine *\"): no law is called so; see kvproof check --list");
  const ListReport fine{.file = "list.json"};
  BOOST_TEST(!parsed(junit_xml(run(), expected_laws(), &fine)).child("testsuites").last_child().child("testcase").child("failure"));
}

BOOST_AUTO_TEST_CASE(properties_say_how_to_have_the_run_again) {
  const auto document = parsed(junit_xml(run(), laws()));
  const auto length = document.child("testsuites").first_child(), window = length.next_sibling();
  BOOST_TEST(property(length, "seed") == "7");
  BOOST_TEST(property(length, "backend") == "exec:python3 a.py --x <y>");
  BOOST_TEST(property(length, "tolerance") == "atol 1e-05, rtol 0.0001 (default)");
  BOOST_TEST(property(length, "worst") == "0.25");
  BOOST_TEST(property(length, "length.rows.rows") == "70");
  BOOST_TEST(property(length, "length.rows.not_covered") == "20 traces: op read");
  BOOST_TEST(property(window, "worst") == "nan");  // never hidden by a number
  BOOST_TEST(property(window, "window.band.worst") == "no numbers");
}

BOOST_AUTO_TEST_CASE(verdicts_become_failure_skipped_and_error) {
  const auto document = parsed(junit_xml(run(), laws()));
  const auto window = document.child("testsuites").last_child();
  const auto of = [&](const char* law) { return window.find_child_by_attribute("testcase", "name", law); };
  BOOST_TEST(of("window.band").child("skipped").attribute("message").value() == "not covered: 80 traces: kind static_sliding_window");
  const auto failure = of("window.chunking").child("failure");
  BOOST_TEST(failure.attribute("type").value() == "wrong_logits");
  BOOST_TEST(failure.attribute("message").value() == "window.chunking 17 step 4: logit 12 is <&> \"odd\"");
  BOOST_TEST(std::string(failure.text().get()).find("replay: kvproof replay window-chunking-17.trace.json --backend engine\n") != std::string::npos);
  BOOST_TEST(of("window.crop").child("error").attribute("type").value() == "nothing_compared");
  BOOST_TEST(!parsed(junit_xml(run(), laws())).child("testsuites").first_child().child("testcase").first_child());  // a pass is empty
}

BOOST_AUTO_TEST_CASE(without_times_the_same_seed_gives_the_same_bytes) {
  CheckRun first = run(), second = run();
  first.times = second.times = false;
  second.started = "2031-01-01T00:00:00";
  auto slower = laws();
  slower[0].seconds = 99;
  BOOST_TEST(junit_xml(first, laws()) == junit_xml(second, slower));
}

BOOST_AUTO_TEST_CASE(text_that_no_xml_may_hold_is_replaced) {
  BOOST_TEST(xml_text("a\tb\nc ä €") == "a\tb\nc ä €");
  BOOST_TEST(xml_text(std::string("a\0b\x1b[31m\x7f", 9)) == "a\uFFFDb\uFFFD[31m\uFFFD");
  BOOST_TEST(xml_text("cut \xE2\x82") == "cut \uFFFD");
  BOOST_TEST(xml_text("\xFF\xC0\xAF!").find('!') != std::string::npos);
  BOOST_TEST(xml_text("\xEF\xBF\xBF|\xEF\xBF\xBE") == "\uFFFD|\uFFFD");
}

BOOST_AUTO_TEST_CASE(every_report_is_valid_against_the_schema, *boost::unit_test::enable_if<std::string_view(KVPROOF_XMLLINT).ends_with("xmllint")>()) {
  auto odd = laws();
  odd[3].failures = {failing_case(std::string("bytes \x01 \xFF and ]]> ") + std::string(1, '\0'))};
  odd[3].failures.front().judgement.findings.front().message += std::string(5000, 'x');
  CheckRun timeless = run();
  timeless.times = false;
  BOOST_TEST(valid(junit_xml(run(), laws())));
  BOOST_TEST(valid(junit_xml(run(), odd)));
  BOOST_TEST(valid(junit_xml(timeless, laws())));
  BOOST_TEST(valid(junit_xml(run(), {})));
  const ListReport stale = stale_list(), fine{.file = "list.json"};
  BOOST_TEST(valid(junit_xml(run(), expected_laws(), &stale)));
  BOOST_TEST(valid(junit_xml(run(), expected_laws(), &fine)));
}

BOOST_AUTO_TEST_CASE(the_schema_refuses_what_readers_refuse, *boost::unit_test::enable_if<std::string_view(KVPROOF_XMLLINT).ends_with("xmllint")>()) {
  const std::string good = junit_xml(run(), laws());
  for (const auto& [was, is] : std::vector<std::pair<std::string, std::string>>{
           {"tests=\"2\"", "tests=\"two\""}, {"failures=\"0\"", ""}, {"<skipped ", "<ignored "}, {"type=\"wrong_logits\"", ""}, {"<system-out />", ""},
           {"2026-11-29T17:06:00", "yesterday"}, {"time=\"0.500\"", "time=\"nan\""}, {"classname=\"kvproof.length\"", ""}, {"id=\"1\"", "id=\"0\""}, {"hostname=\"localhost\"", ""}}) {
    std::string bad = good;
    const auto at = bad.find(was);
    BOOST_REQUIRE_MESSAGE(at != std::string::npos, was);
    BOOST_TEST(!valid(bad.replace(at, was.size(), is)), was << " -> " << is << " is not refused");
  }
}

BOOST_AUTO_TEST_SUITE_END()
