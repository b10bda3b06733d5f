#include "harness/trace/step_json.hpp"

#include <fmt/format.h>

#include <array>

#include "engine/base/error.hpp"
#include "engine/safetensors/text.hpp"
#include "harness/trace/fields.hpp"

namespace kvproof::harness {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
void put(Json& json, const char* name, const std::optional<T>& value) {
  if (value) json[name] = *value;
}

// One writer and one reader per op, in the order of the variant Call.

void write(Json& json, const NewCache& call) {
  json["cache"] = call.cache;
  json["kind"] = call.kind;
  put(json, "capacity", call.capacity);
  put(json, "window", call.window);
  put(json, "model", call.model);
}

void write(Json& json, const Forward& call) {
  json["cache"] = call.cache ? Json(*call.cache) : Json(nullptr);
  json["input_ids"] = call.input_ids;
  put(json, "attention_mask", call.attention_mask);
  put(json, "position_ids", call.position_ids);
  if (!call.use_cache) json["use_cache"] = false;
  if (call.logits != "all") json["logits"] = call.logits;
  put(json, "model", call.model);
}

void write(Json& json, const Clone& call) { json.update({{"cache", call.cache}, {"from", call.from}}); }
void write(Json& json, const Crop& call) { json.update({{"cache", call.cache}, {"length", call.length}}); }
void write(Json& json, const Gather& call) { json.update({{"cache", call.cache}, {"rows", call.rows}}); }
void write(Json& json, const Reset& call) { json["cache"] = call.cache; }
void write(Json& json, const Drop& call) { json["cache"] = call.cache; }
void write(Json& json, const Length& call) { json["cache"] = call.cache; }
void write(Json& json, const Read& call) { json.update({{"cache", call.cache}, {"layer", call.layer}}); }
void write(Json& json, const Save& call) { json.update({{"cache", call.cache}, {"to", call.to}}); }
void write(Json& json, const Load& call) { json.update({{"cache", call.cache}, {"from", call.from}}); }

void write(Json& json, const Generate& call) {
  put(json, "kind", call.kind);
  put(json, "capacity", call.capacity);
  put(json, "window", call.window);
  json["input_ids"] = call.input_ids;
  put(json, "attention_mask", call.attention_mask);
  json["max_new_tokens"] = call.max_new_tokens;
  put(json, "eos_token_id", call.eos_token_id);
  put(json, "model", call.model);
}

Call read_new(Fields& f) {
  return NewCache{f.text("cache"), f.text("kind"), f.maybe_integer("capacity"), f.maybe_integer("window"), f.maybe_text("model")};
}

Call read_forward(Fields& f) {
  Forward call;
  call.cache = f.maybe_text("cache");
  call.input_ids = f.rows("input_ids");
  call.attention_mask = f.maybe_rows("attention_mask");
  call.position_ids = f.maybe_rows("position_ids");
  if (f.has("use_cache")) call.use_cache = f.flag("use_cache");
  if (f.has("logits")) call.logits = f.text("logits");
  call.model = f.maybe_text("model");
  return call;
}

Call read_generate(Fields& f) {
  Generate call;
  call.kind = f.maybe_text("kind");
  call.capacity = f.maybe_integer("capacity");
  call.window = f.maybe_integer("window");
  call.input_ids = f.rows("input_ids");
  call.attention_mask = f.maybe_rows("attention_mask");
  call.max_new_tokens = f.integer("max_new_tokens");
  call.eos_token_id = f.maybe_integer("eos_token_id");
  call.model = f.maybe_text("model");
  return call;
}

struct Reader {
  std::string_view op;
  Call (*read)(Fields&);
};

constexpr std::array<Reader, std::variant_size_v<Call>> kReaders = {{
    {"new", read_new},
    {"forward", read_forward},
    {"clone", [](Fields& f) -> Call { return Clone{f.text("cache"), f.text("from")}; }},
    {"crop", [](Fields& f) -> Call { return Crop{f.text("cache"), f.integer("length")}; }},
    {"gather", [](Fields& f) -> Call { return Gather{f.text("cache"), f.integers("rows")}; }},
    {"reset", [](Fields& f) -> Call { return Reset{f.text("cache")}; }},
    {"drop", [](Fields& f) -> Call { return Drop{f.text("cache")}; }},
    {"length", [](Fields& f) -> Call { return Length{f.text("cache")}; }},
    {"read", [](Fields& f) -> Call { return Read{f.text("cache"), f.integer("layer")}; }},
    {"save", [](Fields& f) -> Call { return Save{f.text("cache"), f.text("to")}; }},
    {"load", [](Fields& f) -> Call { return Load{f.text("cache"), f.text("from")}; }},
    {"generate", read_generate},
}};

Call read_call(Fields& fields) {
  const std::string op = fields.text("op");
  for (const Reader& reader : kReaders)
    if (reader.op == op) return reader.read(fields);
  throw DataError({fields.where(), fmt::format("unknown op {}", shown(op)), "an op of docs/contract.md", ""});
}

Code read_code(Fields& fields) {
  const std::string name = fields.text("error");
  if (const auto code = code_from_name(name); code && *code != Code::other) return *code;
  throw DataError({fields.where(), fmt::format("unknown error code {}", shown(name)), "a code of docs/contract.md", ""});
}

std::size_t read_lane(Fields& fields) {
  constexpr std::int64_t kMostLanes = 16;
  const std::int64_t lane = fields.integer("lane");
  if (lane < 0 || lane >= kMostLanes)
    throw DataError({fields.where(), fmt::format("lane is {}", lane), fmt::format("0 to {}", kMostLanes - 1), ""});
  return static_cast<std::size_t>(lane);
}

}  // namespace

nlohmann::ordered_json step_to_json(const Step& step) {
  Json json;
  json["op"] = op_name(step.call);
  std::visit([&](const auto& call) { write(json, call); }, step.call);
  put(json, "expect", step.expect);
  if (step.error) json["error"] = code_name(*step.error);
  if (step.lane != 0) json["lane"] = step.lane;
  return json;
}

Step step_from_json(const nlohmann::json& document, const std::string& where) {
  Fields fields(document, where);
  Step step;
  step.call = read_call(fields);
  if (fields.has("error")) step.error = read_code(fields);
  if (fields.has("lane")) step.lane = read_lane(fields);
  if (std::holds_alternative<Length>(step.call)) step.expect = fields.maybe_integer("expect");
  fields.done();
  return step;
}

Call call_from_json(const nlohmann::json& document, const std::string& where) {
  Fields fields(document, where);
  return read_call(fields);
}

Trace trace_from_json(const nlohmann::json& array, const std::string& where) {
  if (!array.is_array()) throw DataError({where, fmt::format("the trace is of type {}", array.type_name()), "a JSON array of steps", ""});
  Trace trace;
  for (std::size_t i = 0; i < array.size(); ++i) trace.push_back(step_from_json(array[i], fmt::format("{}: step {}", where, i)));
  return trace;
}

}  // namespace kvproof::harness
