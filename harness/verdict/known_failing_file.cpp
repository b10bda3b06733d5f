#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/error.hpp"
#include "engine/safetensors/json.hpp"
#include "engine/safetensors/text.hpp"
#include "harness/laws/law.hpp"
#include "harness/trace/fields.hpp"
#include "harness/verdict/known_failing.hpp"
#include "harness/verdict/pattern.hpp"

namespace kvproof::harness {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostLaws = 20;          // an entry that means more switches the judging off
constexpr std::size_t kMostTraces = 1'000'000; // what check can be asked to play

[[noreturn]] void refuse(const Fields& fields, const std::string& found, const std::string& expected, const std::string& next = "") {
  throw DataError({fields.where(), found, expected, next});
}

void require_format(Fields& fields) {
  const std::string format = fields.text("format");
  if (format != "kvproof-known-failing") refuse(fields, "format is " + shown(format), "\"kvproof-known-failing\"");
  const auto version = fields.integers("version");
  if (version.size() != 2 || version[0] != 1) refuse(fields, "version is " + cut(nlohmann::json(version).dump(), 60), "[1, 0]", "A newer kvproof may read it.");
}

std::string pattern(Fields& fields, const char* name) {
  std::string text = fields.text(name);
  if (text.empty()) refuse(fields, fmt::format("{} is empty", name), "a pattern");
  return text;
}

std::optional<FindingKind> finding_in(Fields& fields) {
  const auto name = fields.maybe_text("finding");
  if (!name) return std::nullopt;
  const auto kind = finding_from_name(*name);
  if (!kind) refuse(fields, "finding is " + shown(*name), "a finding of docs/reports.md");
  return kind;
}

std::optional<Code> code_in(Fields& fields) {
  const auto name = fields.maybe_text("code");
  if (!name) return std::nullopt;
  const auto code = code_from_name(*name);
  if (!code) refuse(fields, "code is " + shown(*name), "a code of docs/contract.md");
  if (concerns_trace_words(*code)) refuse(fields, fmt::format("code is \"{}\"", *name), "a code that concerns the engine", "This one is about the words of a trace: mend the adapter.");
  return code;
}

std::size_t traces_in(Fields& fields) {
  if (!fields.has("traces")) return KnownFailure{}.traces;
  const std::uint64_t traces = fields.natural("traces");
  if (traces < 1 || traces > kMostTraces) refuse(fields, fmt::format("traces is {}", traces), fmt::format("1 to {}", kMostTraces));
  return static_cast<std::size_t>(traces);
}

std::string reason_in(Fields& fields, Unwritten unwritten) {
  std::string reason = fields.text("reason");
  if (reason.find_first_not_of(" \t\n") == std::string::npos) refuse(fields, "reason is empty", "why this failure is expected");
  if (unwritten == Unwritten::refused && reason.starts_with(kUnwrittenReason)) refuse(fields, "reason is " + shown(reason), "why this failure is expected", "Write it.");
  return reason;
}

/// Expecting anything of anybody is no expectation.
void require_narrow(const Fields& fields, const KnownFailure& entry) {
  if (entry.finding && entry.code) return;
  const auto count = static_cast<std::size_t>(std::ranges::count_if(laws(), [&](const Law& law) { return matches_pattern(entry.law, law.id); }));
  const bool any_backend = entry.backend.find_first_not_of('*') == std::string::npos;
  if (count > kMostLaws)
    refuse(fields, fmt::format("law {} means {} laws", shown(entry.law), count), fmt::format("at most {} without a finding and a code", kMostLaws));
  if (any_backend && !entry.finding) refuse(fields, fmt::format("backend {} means every backend", shown(entry.backend)), "a finding, or a name");
}

KnownFailure read_entry(const nlohmann::json& document, const std::string& where, Unwritten unwritten) {
  Fields fields(document, where);
  KnownFailure entry;
  entry.law = pattern(fields, "law");
  entry.backend = pattern(fields, "backend");
  entry.finding = finding_in(fields);
  entry.code = code_in(fields);
  entry.traces = traces_in(fields);
  entry.reason = reason_in(fields, unwritten);
  fields.done();
  require_narrow(fields, entry);
  return entry;
}

bool say_the_same(const KnownFailure& a, const KnownFailure& b) { return a.law == b.law && a.backend == b.backend && a.finding == b.finding && a.code == b.code; }

}  // namespace

KnownFailing parse_known_failing(std::string_view text, const std::string& where, Unwritten unwritten) {
  const nlohmann::json document = parse_json(text, where);
  Fields fields(document, where);
  require_format(fields);
  KnownFailing list;
  for (const nlohmann::json& each : fields.array("entries")) {
    const std::string at = fmt::format("{}: entry {}", where, list.entries.size());
    KnownFailure entry = read_entry(each, at, unwritten);
    const auto twin = std::ranges::find_if(list.entries, [&](const KnownFailure& other) { return say_the_same(entry, other); });
    if (twin != list.entries.end()) throw DataError({at, fmt::format("says the same as entry {}", twin - list.entries.begin()), "each failure once", ""});
    list.entries.push_back(std::move(entry));
  }
  fields.done();
  return list;
}

std::string format_known_failing(const KnownFailing& list) {
  std::string text = "{\"format\": \"kvproof-known-failing\", \"version\": [1, 0], \"entries\": [";
  const char* separator = "\n  ";
  for (const KnownFailure& entry : list.entries) {
    Json json = {{"law", entry.law}, {"backend", entry.backend}};
    if (entry.finding) json["finding"] = finding_name(*entry.finding);
    if (entry.code) json["code"] = code_name(*entry.code);
    if (entry.traces != KnownFailure{}.traces) json["traces"] = entry.traces;
    json["reason"] = entry.reason;
    text += separator + json.dump(-1, ' ', false, Json::error_handler_t::replace);
    separator = ",\n  ";
  }
  return text + "\n]}\n";
}

}  // namespace kvproof::harness
