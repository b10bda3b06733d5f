#include "harness/trace/trace_file.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/base/error.hpp"
#include "engine/safetensors/json.hpp"
#include "engine/safetensors/text.hpp"
#include "engine/safetensors/writer.hpp"
#include "harness/trace/fields.hpp"
#include "harness/trace/step_json.hpp"

namespace kvproof::harness {
namespace {

using Json = nlohmann::ordered_json;

void require_format(Fields& fields) {
  const std::string format = fields.text("format");
  if (format != "kvproof-trace") throw DataError({fields.where(), fmt::format("format is {}", shown(format)), "\"kvproof-trace\"", ""});
  const auto version = fields.integers("version");
  if (version.size() != 2 || version[0] != 1)
    throw DataError({fields.where(), fmt::format("version is {}", cut(nlohmann::json(version).dump(), 60)), "[1, 0]", "A newer kvproof may read it."});
}

ModelSource read_model(const nlohmann::json& document, const std::string& where) {
  Fields fields(document, where);
  ModelSource model;
  if (fields.has("config")) {
    model.config = fields.object("config").dump();
    model.seed = fields.natural("seed");
  } else {
    model.folder = fields.text("folder");
    model.weights_sha256 = fields.text("weights_sha256");
  }
  fields.done();
  return model;
}

Json model_to_json(const ModelSource& model) {
  if (!model.generated()) return {{"folder", model.folder}, {"weights_sha256", model.weights_sha256}};
  return {{"config", Json::parse(model.config)}, {"seed", model.seed}};
}

std::optional<double> read_bound(Fields& fields, const char* name) {
  if (!fields.has(name)) return std::nullopt;
  const double bound = fields.number(name);
  if (!(bound >= 0)) throw DataError({fields.where(), fmt::format("{} is {}", name, bound), "a number >= 0", ""});
  return bound;
}

template <typename Name>
std::optional<Name> read_name(Fields& fields, const char* field, std::optional<Name> (*from_name)(std::string_view) noexcept, const char* expected) {
  const auto text = fields.maybe_text(field);
  if (!text) return std::nullopt;
  const auto name = from_name(*text);
  if (!name) throw DataError({fields.where(), fmt::format("{} is {}", field, shown(*text)), expected, ""});
  return name;
}

RunHeader read_run(const nlohmann::json& document, const std::string& where) {
  Fields fields(document, where);
  RunHeader run;
  if (fields.has("poison")) run.poison = fields.flag("poison");
  run.law = fields.maybe_text("law");
  run.finding = read_name<FindingKind>(fields, "finding", finding_from_name, "a finding of docs/reports.md");
  run.code = read_name<Code>(fields, "code", code_from_name, "a code of docs/contract.md");
  run.atol = read_bound(fields, "atol");
  run.rtol = read_bound(fields, "rtol");
  if (fields.has("derived_tolerance")) run.derived_tolerance = fields.flag("derived_tolerance");
  fields.done();
  return run;
}

Json run_to_json(const RunHeader& run) {
  Json json = Json::object();
  if (run.poison) json["poison"] = true;
  if (run.law) json["law"] = *run.law;
  if (run.finding) json["finding"] = finding_name(*run.finding);
  if (run.code) json["code"] = code_name(*run.code);
  if (run.atol) json["atol"] = *run.atol;
  if (run.rtol) json["rtol"] = *run.rtol;
  if (run.derived_tolerance) json["derived_tolerance"] = true;
  return json;
}

void require_known_models(const TraceFile& file, const std::string& where) {
  for (std::size_t i = 0; i < file.trace.size(); ++i) {
    const auto model = model_of(file.trace[i].call);
    if (model && !file.models.contains(*model))
      throw DataError({fmt::format("{}: step {}", where, i), fmt::format("model {}", shown(*model)), "a model of the header's \"models\"", ""});
  }
}

struct NameOfModel {
  using Result = std::optional<std::string>;
  Result operator()(const NewCache& call) const { return call.model.value_or("main"); }
  Result operator()(const Generate& call) const { return call.model.value_or("main"); }
  Result operator()(const Forward& call) const { return call.model || call.cache ? call.model : Result("main"); }
  Result operator()(const auto&) const { return std::nullopt; }
};

}  // namespace

std::optional<std::string> model_of(const Call& call) { return std::visit(NameOfModel{}, call); }

TraceFile parse_trace_file(std::string_view text, const std::string& where) {
  const nlohmann::json document = parse_json(text, where);
  Fields fields(document, where);
  require_format(fields);
  TraceFile file;
  for (const auto& [name, model] : fields.object("models").items())
    file.models[name] = read_model(model, fmt::format("{}: model {}", where, shown(name)));
  if (fields.has("run")) file.run = read_run(fields.object("run"), where + ": run");
  file.trace = trace_from_json(fields.array("trace"), where);
  fields.done();
  require_known_models(file, where);
  return file;
}

TraceFile read_trace_file(const std::filesystem::path& path) { return parse_trace_file(read_text_file(path), path.string()); }

std::string format_trace_file(const TraceFile& file) {
  std::string text = "{\"format\": \"kvproof-trace\", \"version\": [1, 0],\n \"models\": {";
  const char* separator = "";
  for (const auto& [name, model] : file.models) {
    text += fmt::format("{}{}: {}", separator, Json(name).dump(), model_to_json(model).dump());
    separator = ", ";
  }
  text += fmt::format("}},\n \"run\": {},\n \"trace\": [", run_to_json(file.run).dump());
  separator = "\n  ";
  for (const Step& step : file.trace) {
    text += separator + step_to_json(step).dump();
    separator = ",\n  ";
  }
  return text + "\n]}\n";
}

void write_trace_file(const std::filesystem::path& path, const TraceFile& file) {
  const std::string text = format_trace_file(file);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  write_file_atomically(path, std::span(&bytes, 1));
}

std::string read_text_file(const std::filesystem::path& path) {
  constexpr std::size_t kLongest = std::size_t{64} << 20U;  // a device or a mistaken checkpoint ends here, not with the memory
  std::ifstream stream(path, std::ios::binary);
  std::string text;
  std::array<char, 65536> piece{};
  while (stream.read(piece.data(), piece.size()), stream.gcount() > 0) {
    text.append(piece.data(), static_cast<std::size_t>(stream.gcount()));
    if (text.size() > kLongest) throw DataError({path.string(), "more than 64 MiB of text", "a trace file", ""});
  }
  if (!stream.eof()) throw Error({path.string(), fmt::format("cannot be read: {}", std::strerror(errno)), "", ""});
  return text;
}

}  // namespace kvproof::harness
