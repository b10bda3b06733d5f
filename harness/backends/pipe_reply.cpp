#include "harness/backends/pipe_reply.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "engine/base/error.hpp"
#include "engine/safetensors/json.hpp"
#include "engine/weights/float16.hpp"
#include "harness/trace/fields.hpp"
#include "harness/trace/step_json.hpp"

namespace kvproof::harness {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMajor = 1;

constexpr std::array<std::pair<const char*, bool Capabilities::*>, 6> kFlags = {{{"codes", &Capabilities::codes},
                                                                                 {"threads", &Capabilities::threads},
                                                                                 {"exact", &Capabilities::exact},
                                                                                 {"unbounded_window", &Capabilities::unbounded_window},
                                                                                 {"deterministic", &Capabilities::deterministic},
                                                                                 {"poison", &Capabilities::poison}}};

std::vector<std::byte> encode(const Json& document, std::span<const TensorToWrite> tensors = {}) {
  return encode_message(document.dump(-1, ' ', false, Json::error_handler_t::replace), tensors);
}

Json step_of(const LaneCall& call) {
  Step step{*call.call, std::nullopt, std::nullopt, call.lane};
  return step_to_json(step);
}

/// The tensors of a reply and their bytes.
class Payload {
 public:
  void add_floats(std::string name, const Tensor& tensor) {
    const auto lossless = [](double v) { return static_cast<double>(static_cast<float>(v)) == v || std::isnan(v); };
    if (!std::ranges::all_of(tensor.values, lossless)) return add(std::move(name), Dtype::f64, tensor.shape, std::as_bytes(std::span(tensor.values)));
    floats_.push_back(std::make_unique<std::vector<float>>(tensor.values.size()));
    std::ranges::transform(tensor.values, floats_.back()->begin(), [](double v) { return static_cast<float>(v); });
    add(std::move(name), Dtype::f32, tensor.shape, std::as_bytes(std::span(*floats_.back())));
  }

  void add_ids(std::string name, const Rows& ids) {
    ids_.push_back(std::make_unique<std::vector<std::int64_t>>());
    for (const auto& row : ids) ids_.back()->insert(ids_.back()->end(), row.begin(), row.end());
    add(std::move(name), Dtype::i64, {ids.size(), ids.empty() ? 0 : ids.front().size()}, std::as_bytes(std::span(*ids_.back())));
  }

  [[nodiscard]] std::span<const TensorToWrite> tensors() const { return tensors_; }

 private:
  void add(std::string name, Dtype dtype, std::vector<std::size_t> shape, std::span<const std::byte> bytes) {
    tensors_.push_back({std::move(name), dtype, std::move(shape), bytes});
  }

  std::vector<TensorToWrite> tensors_;
  std::vector<std::unique_ptr<std::vector<float>>> floats_;
  std::vector<std::unique_ptr<std::vector<std::int64_t>>> ids_;
};

/// Writes one reply into `document` and its numbers into `payload`, their names behind `prefix`.
void put_reply(Json& document, Payload& payload, const std::string& prefix, const Reply& reply) {
  if (const auto* refusal = std::get_if<Refusal>(&reply)) {
    document["error"] = {{"code", code_name(refusal->code)}, {"message", refusal->message}};
    return;
  }
  if (const auto* unsupported = std::get_if<Unsupported>(&reply)) {
    document["unsupported"] = {{"reason", unsupported->reason}};
    return;
  }
  const auto& answer = std::get<Answer>(reply);
  document["ok"] = Json::object();
  if (answer.length) document["ok"]["length"] = *answer.length;
  if (answer.logits) payload.add_floats(prefix + "logits", *answer.logits);
  if (answer.keys) payload.add_floats(prefix + "keys", *answer.keys);
  if (answer.values) payload.add_floats(prefix + "values", *answer.values);
  if (answer.ids) payload.add_ids(prefix + "ids", *answer.ids);
}

template <typename T>
T element(const TensorView& view, std::size_t index) {
  T value{};
  std::memcpy(&value, view.bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

[[noreturn]] void wrong_dtype(const TensorView& view, const char* expected, const std::string& where) {
  throw DataError({where, fmt::format("tensor {} is {}", view.name, dtype_name(view.dtype)), expected, ""});
}

Tensor floats_of(const TensorView& view, const std::string& where) {
  Tensor tensor{view.shape, std::vector<double>(view.bytes.size() / dtype_size(view.dtype))};
  const auto fill = [&](const auto& read) {
    for (std::size_t i = 0; i < tensor.values.size(); ++i) tensor.values[i] = static_cast<double>(read(i));
  };
  switch (view.dtype) {
    case Dtype::f32: fill([&](std::size_t i) { return element<float>(view, i); }); break;
    case Dtype::f64: fill([&](std::size_t i) { return element<double>(view, i); }); break;
    case Dtype::f16: fill([&](std::size_t i) { return float_from_f16(element<std::uint16_t>(view, i)); }); break;
    case Dtype::bf16: fill([&](std::size_t i) { return float_from_bf16(element<std::uint16_t>(view, i)); }); break;
    default: wrong_dtype(view, "F32, F64, F16 or BF16", where);
  }
  return tensor;
}

/// [rows][n]. A tensor without bytes may claim any number of rows: more than a batch can have are not made.
Rows ids_of(const TensorView& view, const std::string& where) {
  constexpr std::size_t kMostEmptyRows = 65536;
  if (view.dtype != Dtype::i64 && view.dtype != Dtype::i32) wrong_dtype(view, "I64 or I32", where);
  if (view.shape.size() != 2 || (view.bytes.empty() && view.shape[0] > kMostEmptyRows))
    throw DataError({where, fmt::format("tensor {} has shape [{}]", view.name, fmt::join(view.shape, ", ")), "[rows, ids]", ""});
  Rows rows(view.shape[0]);
  for (std::size_t b = 0; b < rows.size(); ++b)
    for (std::size_t i = 0; i < view.shape[1]; ++i) {
      const std::size_t at = b * view.shape[1] + i;
      rows[b].push_back(view.dtype == Dtype::i64 ? element<std::int64_t>(view, at) : element<std::int32_t>(view, at));
    }
  return rows;
}

Answer answer_of(const nlohmann::json& ok, const SafetensorsFile& tensors, const std::string& prefix, const std::string& where) {
  Answer answer;
  Fields fields(ok, where + ": ok");
  answer.length = fields.maybe_integer("length");
  const auto floats = [&](const char* name) -> std::optional<Tensor> {
    const TensorView* view = tensors.find(prefix + name);
    return view == nullptr ? std::nullopt : std::optional(floats_of(*view, where));
  };
  answer.logits = floats("logits");
  answer.keys = floats("keys");
  answer.values = floats("values");
  if (const TensorView* view = tensors.find(prefix + "ids")) answer.ids = ids_of(*view, where);
  return answer;
}

Refusal refusal_of(const nlohmann::json& error, const std::string& where) {
  Fields fields(error, where + ": error");
  const std::string name = fields.text("code");
  std::string message = fields.has("message") ? fields.text("message") : "";
  const auto code = code_from_name(name);
  return {code.value_or(Code::other), code ? std::move(message) : fmt::format("unknown code \"{}\": {}", name, message)};
}

/// The one of ok, error and unsupported that a reply holds.
std::string kind_of(Fields& fields) {
  std::string found;
  for (const char* kind : {"ok", "error", "unsupported"})
    if (fields.has(kind)) found += (found.empty() ? "" : " and ") + std::string(kind);
  if (found.empty() || found.find(' ') != std::string::npos)
    throw DataError({fields.where(), fmt::format("it holds {}", found.empty() ? "none" : found), "exactly one of ok, error and unsupported", ""});
  return found;
}

Reply reply_of(const nlohmann::json& document, const SafetensorsFile& tensors, const std::string& prefix, const std::string& where) {
  Fields fields(document, where);
  const std::string kind = kind_of(fields);
  if (kind == "error") return refusal_of(fields.object("error"), where);
  if (kind == "ok") return answer_of(fields.object("ok"), tensors, prefix, where);
  Fields unsupported(fields.object("unsupported"), where + ": unsupported");
  return Unsupported{unsupported.has("reason") ? unsupported.text("reason") : "no reason given"};
}

nlohmann::json document_with_id(const PipeMessage& message, std::uint64_t id, const std::string& where) {
  nlohmann::json document = parse_json(message.document, where);
  Fields fields(document, where);
  if (const std::uint64_t found = fields.natural("id"); found != id)
    throw DataError({where, fmt::format("it has id {}", found), fmt::format("{}, the request's", id), ""});
  return document;
}

std::set<std::string> names(Fields& fields, const char* name) {
  std::set<std::string> found;
  for (const auto& each : fields.array(name)) {
    if (!each.is_string()) throw DataError({fields.where(), fmt::format("field \"{}\" holds {}", name, each.type_name()), "a list of strings", ""});
    found.insert(each.get<std::string>());
  }
  return found;
}

void require_major(Fields& fields) {
  const auto protocol = fields.integers("protocol");
  if (protocol.size() != 2 || protocol[0] != kMajor)
    throw DataError({fields.where(), fmt::format("it speaks protocol [{}]", fmt::join(protocol, ", ")), fmt::format("[{}, any]", kMajor), ""});
}

}  // namespace

std::vector<std::byte> encode_request(std::uint64_t id, std::string_view op, const Json& fields) {
  Json document = {{"id", id}, {"op", op}};
  document.update(fields);
  return encode(document);
}

std::vector<std::byte> encode_call(std::uint64_t id, const LaneCall& call) {
  Json document = {{"id", id}};
  document.update(step_of(call));
  return encode(document);
}

std::vector<std::byte> encode_together(std::uint64_t id, std::span<const LaneCall> calls) {
  Json steps = Json::array();
  for (const LaneCall& call : calls) steps.push_back(step_of(call));
  return encode_request(id, "together", {{"steps", std::move(steps)}});
}

std::vector<std::byte> encode_reply(std::uint64_t id, const Reply& reply) {
  Json document = {{"id", id}};
  Payload payload;
  put_reply(document, payload, "", reply);
  return encode(document, payload.tensors());
}

std::vector<std::byte> encode_replies(std::uint64_t id, std::span<const Reply> replies) {
  Json list = Json::array();
  Payload payload;
  for (std::size_t i = 0; i < replies.size(); ++i) put_reply(list.emplace_back(Json::object()), payload, fmt::format("{}.", i), replies[i]);
  return encode({{"id", id}, {"ok", {{"replies", std::move(list)}}}}, payload.tensors());
}

std::vector<std::byte> encode_ok(std::uint64_t id, const Json& fields) { return encode({{"id", id}, {"ok", fields}}); }

Reply decode_reply(const PipeMessage& message, std::uint64_t id, const std::string& where) {
  return reply_of(document_with_id(message, id, where), message.tensors, "", where);
}

std::vector<Reply> decode_replies(const PipeMessage& message, std::uint64_t id, std::size_t count, const std::string& where) {
  const nlohmann::json document = document_with_id(message, id, where);
  Fields fields(document, where);
  if (kind_of(fields) != "ok") return std::vector<Reply>(count, reply_of(document, message.tensors, "", where));
  Fields ok(fields.object("ok"), where + ": ok");
  const auto& list = ok.array("replies");
  if (list.size() != count) throw DataError({where, fmt::format("{} replies", list.size()), fmt::format("{}, one for each step", count), ""});
  std::vector<Reply> replies;
  for (std::size_t i = 0; i < count; ++i) replies.push_back(reply_of(list[i], message.tensors, fmt::format("{}.", i), fmt::format("{}: reply {}", where, i)));
  return replies;
}

Capabilities decode_hello(const PipeMessage& message, std::uint64_t id, const std::string& where) {
  const nlohmann::json document = document_with_id(message, id, where);
  Fields fields(document, where);
  if (const std::string kind = kind_of(fields); kind != "ok")
    throw DataError({where, fmt::format("{} {}", kind, document.at(kind).dump()), "ok {protocol, name, version, capabilities}", ""});
  Fields ok(fields.object("ok"), where + ": ok");
  require_major(ok);
  Capabilities capabilities = capabilities_from_json(ok.object("capabilities"), where + ": capabilities");
  capabilities.name = ok.text("name");
  capabilities.version = ok.text("version");
  return capabilities;
}

Json capabilities_to_json(const Capabilities& capabilities) {
  Json json = {{"kinds", capabilities.kinds}, {"ops", capabilities.ops}};
  if (capabilities.max_batch) json["max_batch"] = *capabilities.max_batch;
  for (const auto& [name, flag] : kFlags) json[name] = capabilities.*flag;
  return json;
}

Capabilities capabilities_from_json(const nlohmann::json& document, const std::string& where) {
  Fields fields(document, where);
  Capabilities capabilities;
  capabilities.kinds = names(fields, "kinds");
  capabilities.ops = names(fields, "ops");
  if (fields.has("max_batch")) capabilities.max_batch = fields.natural("max_batch");
  for (const auto& [name, flag] : kFlags) capabilities.*flag = fields.has(name) && fields.flag(name);
  return capabilities;
}

}  // namespace kvproof::harness
