#include "harness/report/jsonl.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace kvproof::harness {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value)); }

Json place_json(const Place& place) { return {{"row", place.row}, {"column", place.column}, {"element", place.element}}; }

Json finding_json(const Finding& finding) {
  Json json = {{"kind", finding_name(finding.kind)}, {"step", finding.step}};
  if (finding.code) json["code"] = code_name(*finding.code);
  if (finding.place) {
    json.update(place_json(*finding.place));
    json["got"] = number(finding.place->got);
    json["expected"] = number(finding.place->want);
    json["bound"] = number(finding.place->bound);
  }
  json["message"] = finding.message;
  return json;
}

void add_numbers(Json& json, const Judgement& judgement) {
  const Comparison& numbers = judgement.numbers;
  json["rows"] = numbers.rows;
  json["elements"] = numbers.elements;
  json["checks"] = judgement.checks;
  if (!numbers.worst_place) return;
  json["worst"] = number(numbers.worst);
  json["worst_at"] = {{"step", judgement.worst_step}};
  json["worst_at"].update(place_json(*numbers.worst_place));
  json["rms"] = number(std::sqrt(numbers.sum_of_squares / static_cast<double>(numbers.elements)));
  json["kl"] = number(numbers.worst_kl);
  json["top1"] = {{"rows", numbers.top1_rows}, {"agree", numbers.top1_agree}, {"undecidable", numbers.top1_undecidable}};
}

}  // namespace

std::string case_jsonl(const CaseReport& report) {
  Json json = {{"case", report.name}, {"backend", report.backend}, {"verdict", verdict_name(report.verdict)}};
  if (const std::string reason = reason_of(report); !reason.empty()) json["reason"] = reason;
  json["tolerance"] = {{"atol", report.tolerance.atol}, {"rtol", report.tolerance.rtol}, {"derived", report.tolerance.derived}, {"source", report.tolerance.source}};
  add_numbers(json, report.judgement);
  json["findings"] = Json::array();
  for (const Finding& finding : report.judgement.findings) json["findings"].push_back(finding_json(finding));
  json["replay"] = report.replay;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace kvproof::harness
