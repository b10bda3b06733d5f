#include "harness/report/junit.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <sstream>

#include "harness/report/text.hpp"

namespace kvproof::harness {
namespace {

using Laws = std::span<const LawReport>;

constexpr const char* kReplacement = "\xEF\xBF\xBD";  // U+FFFD

void attribute(pugi::xml_node node, const char* name, const std::string& value) { node.append_attribute(name).set_value(xml_text(value).c_str()); }

void attribute(pugi::xml_node node, const char* name, std::size_t value) { attribute(node, name, fmt::format("{}", value)); }

void seconds(pugi::xml_node node, const CheckRun& run, double value) { attribute(node, "time", fmt::format("{:.3f}", run.times ? value : 0.0)); }

void property(pugi::xml_node properties, const std::string& name, const std::string& value) {
  auto node = properties.append_child("property");
  attribute(node, "name", name);
  attribute(node, "value", value);
}

std::string number_text(const std::optional<double>& worst) { return worst ? fmt::format("{:.4g}", *worst) : "no numbers"; }

/// The largest; a NaN is larger than any number.
std::optional<double> worst_of(Laws laws) {
  std::optional<double> worst;
  for (const LawReport& law : laws)
    if (law.worst && (!worst || !(*law.worst <= *worst))) worst = law.worst;
  return worst;
}

void add_properties(pugi::xml_node suite, const CheckRun& run, Laws laws) {
  auto properties = suite.append_child("properties");
  property(properties, "seed", fmt::format("{}", run.seed));
  property(properties, "backend", run.backend);
  if (!run.engine.empty()) property(properties, "engine", run.engine);
  property(properties, "tolerance", tolerance_text(run.tolerance));
  property(properties, "worst", number_text(worst_of(laws)));
  for (const LawReport& law : laws) {
    property(properties, law.law + ".traces", fmt::format("{}", law.traces));
    property(properties, law.law + ".rows", fmt::format("{}", law.rows));
    property(properties, law.law + ".worst", number_text(law.worst));
    for (const auto& [reason, count] : law.not_covered) property(properties, law.law + ".not_covered", fmt::format("{} traces: {}", count, reason));
  }
}

std::string reasons_text(const LawReport& law) {
  std::string text;
  for (const auto& [reason, count] : law.not_covered) text += fmt::format("{}{} traces: {}", text.empty() ? "" : "; ", count, reason);
  return text;
}

std::string known_reasons(const LawReport& law) {
  std::string text;
  for (const KnownClass& known : law.known)
    text += fmt::format("{}{} ({} traces): {}", text.empty() ? "" : "; ", class_text(known.one), known.traces, known.reason);
  return text;
}

void add_failure(pugi::xml_node testcase, const LawReport& law) {
  auto failure = testcase.append_child("failure");
  std::string type = "fail", message = fmt::format("{} traces fail", law.failed - law.known_failed), text;
  for (const CaseReport& report : law.failures) text += case_text(report);
  if (!law.failures.empty() && !law.failures.front().judgement.findings.empty()) {
    const Finding& first = law.failures.front().judgement.findings.front();
    type = finding_name(first.kind);
    message = fmt::format("{} step {}: {}", law.failures.front().name, first.step, first.message);
  }
  attribute(failure, "message", message);
  attribute(failure, "type", type);
  failure.text().set(xml_text(text.empty() ? message : text).c_str());
}

void add_testcase(pugi::xml_node suite, const CheckRun& run, const LawReport& law) {
  auto testcase = suite.append_child("testcase");
  attribute(testcase, "name", law.law);
  attribute(testcase, "classname", "kvproof." + std::string(family_of(law.law)));
  seconds(testcase, run, law.seconds);
  switch (verdict_of(law)) {
    case CaseVerdict::pass: return;
    case CaseVerdict::not_covered: return attribute(testcase.append_child("skipped"), "message", "not covered: " + reasons_text(law));
    case CaseVerdict::fail: return add_failure(testcase, law);
    case CaseVerdict::known_failing: return attribute(testcase.append_child("skipped"), "message", "known failing: " + known_reasons(law));
    case CaseVerdict::nothing_compared:
    case CaseVerdict::corrupt:
    case CaseVerdict::no_verdict: break;
  }
  auto error = testcase.append_child("error");
  attribute(error, "message", "nothing was compared");
  attribute(error, "type", "nothing_compared");
}

std::size_t count(Laws laws, CaseVerdict verdict) {
  std::size_t n = 0;
  for (const LawReport& law : laws) n += verdict_of(law) == verdict ? 1 : 0;
  return n;
}

/// How many of a suite's cases ended how.
struct SuiteCounts {
  std::size_t tests = 0, failures = 0, errors = 0, skipped = 0;
};

pugi::xml_node suite_head(pugi::xml_node root, const CheckRun& run, const std::string& name, std::size_t id, const SuiteCounts& counts) {
  auto suite = root.append_child("testsuite");
  attribute(suite, "name", name);
  attribute(suite, "id", id);
  attribute(suite, "package", "kvproof");
  attribute(suite, "timestamp", run.times && !run.started.empty() ? run.started : "1970-01-01T00:00:00");
  attribute(suite, "hostname", "localhost");  // wanted by the format; a report does not depend on the machine's name
  attribute(suite, "tests", counts.tests);
  attribute(suite, "failures", counts.failures);
  attribute(suite, "errors", counts.errors);
  attribute(suite, "skipped", counts.skipped);
  return suite;
}

void suite_end(pugi::xml_node suite) {
  suite.append_child("system-out");
  suite.append_child("system-err");
}

void add_suite(pugi::xml_node root, const CheckRun& run, std::size_t id, Laws laws) {
  const SuiteCounts counts{laws.size(), count(laws, CaseVerdict::fail), count(laws, CaseVerdict::nothing_compared),
                           count(laws, CaseVerdict::not_covered) + count(laws, CaseVerdict::known_failing)};
  auto suite = suite_head(root, run, std::string(family_of(laws.front().law)), id, counts);
  double time = 0;
  for (const LawReport& law : laws) time += law.seconds;
  seconds(suite, run, time);
  add_properties(suite, run, laws);
  for (const LawReport& law : laws) add_testcase(suite, run, law);
  suite_end(suite);
}

/// The list of known failures as a suite of one case.
void add_list_suite(pugi::xml_node root, const CheckRun& run, std::size_t id, const ListReport& list) {
  auto suite = suite_head(root, run, "known_failing", id, {1, list.problems.empty() ? 0U : 1U, 0, 0});
  seconds(suite, run, 0);
  property(suite.append_child("properties"), "list", list.file);
  auto testcase = suite.append_child("testcase");
  attribute(testcase, "name", "list");
  attribute(testcase, "classname", "kvproof.known_failing");
  seconds(testcase, run, 0);
  if (!list.problems.empty()) {
    auto failure = testcase.append_child("failure");
    attribute(failure, "message", problem_text(list.problems.front()));
    attribute(failure, "type", "known_failing");
    failure.text().set(xml_text(list_text(list) + list.rewrite + "\n").c_str());
  }
  suite_end(suite);
}

/// U+FFFE and U+FFFF, which are UTF-8 and still no characters of XML.
bool is_noncharacter(const std::string& text, std::size_t at) { return text.compare(at, 2, "\xEF\xBF") == 0 && static_cast<unsigned char>(text[at + 2]) >= 0xBE; }

}  // namespace

std::string xml_text(const std::string& text) {
  const auto valid = nlohmann::json::parse(nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)).get<std::string>();
  std::string clean;
  for (std::size_t i = 0; i < valid.size(); ++i) {
    const auto byte = static_cast<unsigned char>(valid[i]);
    if (is_noncharacter(valid, i)) {
      clean += kReplacement;
      i += 2;
    } else if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F) {
      clean += kReplacement;
    } else {
      clean += valid[i];
    }
  }
  return clean;
}

std::string junit_xml(const CheckRun& run, Laws laws, const ListReport* list) {
  pugi::xml_document document;
  auto declaration = document.append_child(pugi::node_declaration);
  attribute(declaration, "version", "1.0");
  attribute(declaration, "encoding", "UTF-8");
  auto root = document.append_child("testsuites");
  std::size_t suites = 0;
  for (std::size_t from = 0, to = 0; from < laws.size(); from = to) {  // laws of one family stand together
    while (to < laws.size() && family_of(laws[to].law) == family_of(laws[from].law)) ++to;
    add_suite(root, run, suites++, laws.subspan(from, to - from));
  }
  if (list != nullptr) add_list_suite(root, run, suites, *list);
  std::ostringstream text;
  document.save(text, "  ");
  return text.str();
}

}  // namespace kvproof::harness
