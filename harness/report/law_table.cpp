#include "harness/report/law_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/report/jsonl.hpp"

namespace kvproof::harness {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kColumns = 6;
using Line = std::array<std::string, kColumns>;

const char* word_of(CaseVerdict verdict) {
  switch (verdict) {
    case CaseVerdict::pass: return "pass";
    case CaseVerdict::fail: return "FAIL";
    case CaseVerdict::known_failing: return "known failing";
    case CaseVerdict::not_covered: return "not covered";
    case CaseVerdict::nothing_compared: return "NOTHING COMPARED";
    case CaseVerdict::corrupt: return "CORRUPT";
    case CaseVerdict::no_verdict: break;
  }
  return "NO VERDICT";
}

/// `12 (kind static, and 2 other reasons)`
std::string not_covered_text(const LawReport& law) {
  if (law.not_covered.empty()) return "";
  const auto most = std::ranges::max_element(law.not_covered, {}, [](const auto& entry) { return entry.second; });
  const std::size_t others = law.not_covered.size() - 1;
  std::string text = fmt::format("{} ({}", not_covered_count(law), most->first);
  if (others != 0) text += fmt::format(", and {} other reason{}", others, others == 1 ? "" : "s");
  return text + ")";
}

Line line_of(const LawReport& law) {
  return {law.law, fmt::format("{}", law.traces), fmt::format("{}", law.rows), law.worst ? fmt::format("{:.3g}", *law.worst) : "-",
          word_of(verdict_of(law)), not_covered_text(law)};
}

/// Names to the left, numbers to the right; the last column is not padded, so that no line ends in blanks.
std::string aligned(const Line& line, const std::array<std::size_t, kColumns>& width) {
  std::string text = fmt::format("{:<{}}  {:>{}}  {:>{}}  {:>{}}  {:<{}}  {}", line[0], width[0], line[1], width[1], line[2], width[2], line[3],
                                 width[3], line[4], width[4], line[5]);
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value)); }

void add_class(Json& json, const FindingClass& one) {
  json["kind"] = finding_name(one.kind);
  json["code"] = one.code ? Json(code_name(*one.code)) : Json(nullptr);
}

Json known_json(const LawReport& law) {
  Json list = Json::array();
  for (const KnownClass& each : law.known) {
    Json json = Json::object();
    add_class(json, each.one);
    json["traces"] = each.traces;
    json["reason"] = each.reason;
    list.push_back(json);
  }
  return list;
}

/// A case as `replay` reports it, and what a program wants to know first.
Json failure_json(const CaseReport& failure) {
  Json json = Json::object();
  if (!failure.judgement.findings.empty()) add_class(json, class_of(failure.judgement.findings.front()));
  json["traces"] = failure.traces;
  json["file"] = failure.file;
  json.update(Json::parse(case_jsonl(failure)));
  return json;
}

}  // namespace

std::string law_table_text(std::span<const LawReport> laws) {
  std::vector<Line> lines{{"law", "traces", "rows", "worst", "verdict", "not covered"}};
  for (const LawReport& law : laws) lines.push_back(line_of(law));
  std::array<std::size_t, kColumns> width{};
  for (const Line& line : lines)
    for (std::size_t c = 0; c < kColumns; ++c) width[c] = std::max(width[c], line[c].size());
  std::string text;
  for (const Line& line : lines) text += aligned(line, width);
  return text;
}

std::string law_jsonl(const CheckRun& run, const LawReport& law) {
  Json json = {{"law", law.law}, {"backend", run.backend}, {"engine", run.engine}, {"seed", run.seed}, {"verdict", verdict_name(verdict_of(law))}};
  json["traces"] = law.traces;
  json["rows"] = law.rows;
  json["checks"] = law.checks;
  if (law.worst) json["worst"] = number(*law.worst);
  json["tolerance"] = {{"atol", run.tolerance.atol}, {"rtol", run.tolerance.rtol}, {"derived", run.tolerance.derived}, {"source", run.tolerance.source}};
  json["not_covered"] = Json::object();
  for (const auto& [reason, traces] : law.not_covered) json["not_covered"][reason] = traces;
  if (!law.known.empty()) json["known"] = known_json(law);
  json["failed"] = std::max(law.failed, law.failures.size());
  json["failures"] = Json::array();
  for (const CaseReport& failure : law.failures) json["failures"].push_back(failure_json(failure));
  if (law.ways_left != 0) json["ways_left"] = law.ways_left;
  if (run.times) json["seconds"] = number(law.seconds);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace kvproof::harness
