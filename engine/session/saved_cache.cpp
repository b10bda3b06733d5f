#include "engine/session/saved_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/safetensors/json.hpp"
#include "engine/safetensors/reader.hpp"
#include "engine/safetensors/writer.hpp"
#include "engine/session/check.hpp"

namespace kvproof {
namespace {

constexpr const char* kWhere = "saved cache";
constexpr const char* kFormat = "kvproof-cache";

[[noreturn]] void corrupt(std::string found, std::string expected) { throw DataError({kWhere, std::move(found), std::move(expected), {}}); }

std::string tensor_name(std::size_t layer, std::string_view what) { return fmt::format("layer.{}.{}", layer, what); }

// ---- writing: the document holds what is not an array; arrays without elements are left out

nlohmann::json optional_number(const std::optional<std::int64_t>& number) { return number ? nlohmann::json(*number) : nlohmann::json(nullptr); }

std::string document_text(const SavedCache& saved, const ModelIdentity& owner) {
  const nlohmann::json document{{"format", kFormat},
                                {"version", {1, 0}},
                                {"model", nlohmann::json::parse(owner.text())},
                                {"kind", cache_kind_name(saved.options.kind)},
                                {"capacity", optional_number(saved.options.capacity)},
                                {"window", optional_number(saved.options.window)},
                                {"batch", saved.mask.batch()},
                                {"length", saved.length},
                                {"gone", saved.gone}};
  return document.dump();
}

void add_layer(const SavedCache& saved, std::size_t layer, const KvShape& shape, std::vector<TensorToWrite>& tensors) {
  const KvArrays& arrays = saved.layers[layer];
  const std::vector<std::size_t> extents{arrays.batch, shape.n_head, arrays.columns, shape.head_dim};
  tensors.push_back({tensor_name(layer, "keys"), Dtype::f32, extents, std::as_bytes(std::span(arrays.keys))});
  tensors.push_back({tensor_name(layer, "values"), Dtype::f32, extents, std::as_bytes(std::span(arrays.values))});
}

KvShape shape_of(const Config& config) { return {config.n_layer, config.n_head, config.head_dim()}; }

// ---- reading: the document first, then the model it belongs to, then the arrays against both

const nlohmann::json& field(const nlohmann::json& document, const char* name) {
  const auto found = document.find(name);
  if (found == document.end()) corrupt(fmt::format("no field `{}`", name), "every field of docs/saved_cache.md");
  return *found;
}

std::size_t number_field(const nlohmann::json& document, const char* name) {
  const nlohmann::json& value = field(document, name);
  if (!value.is_number_unsigned()) corrupt(fmt::format("`{}` is {}", name, value.dump()), "an integer of at least 0");
  return value.get<std::size_t>();
}

std::optional<std::int64_t> optional_field(const nlohmann::json& document, const char* name) {
  if (field(document, name).is_null()) return std::nullopt;
  const std::size_t number = number_field(document, name);
  if (number > static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max())) corrupt(fmt::format("`{}` is {}", name, number), "a signed 64-bit integer");
  return static_cast<std::int64_t>(number);
}

nlohmann::json read_document(const SafetensorsFile& file) {
  const auto text = file.metadata().find("kvproof");
  if (file.metadata().size() != 1 || text == file.metadata().end()) corrupt("another container's metadata", "exactly one key, `kvproof`");
  nlohmann::json document = parse_json(text->second, std::string(kWhere) + ": metadata kvproof");
  if (!document.is_object()) corrupt("the document is no object", "an object");
  if (field(document, "format") != kFormat) corrupt("`format` is " + field(document, "format").dump(), kFormat);
  const nlohmann::json& version = field(document, "version");
  if (!version.is_array() || version.size() != 2 || version[0] != 1 || !version[1].is_number_unsigned())
    corrupt("`version` is " + version.dump(), "[1, 0]");
  if (document.size() != 9) corrupt(fmt::format("{} fields", document.size()), "the 9 fields of docs/saved_cache.md");
  return document;
}

CacheOptions read_options(const nlohmann::json& document) {
  const nlohmann::json& name = field(document, "kind");
  const auto kind = name.is_string() ? cache_kind_from_name(name.get_ref<const std::string&>()) : std::nullopt;
  if (!kind) corrupt("`kind` is " + name.dump(), "dynamic, static or static_sliding_window");
  const CacheOptions options{*kind, optional_field(document, "capacity"), optional_field(document, "window")};
  if (const auto fault = fault_of(options)) corrupt(std::string(*fault), {});
  return options;
}

// What forward and crop can leave behind under a window of W: nothing that the next query sees is lost, nothing else is kept.
bool possible_gone(std::size_t length, std::size_t gone, std::size_t window) {
  const std::size_t least = length > window ? length - window : 0;
  return gone >= least && gone <= least + (length >= window ? 1 : 0) && gone <= length;
}

void check_lengths(const CacheOptions& options, std::size_t batch, std::size_t length, std::size_t gone) {
  if ((batch == 0) != (length == 0)) corrupt(fmt::format("batch {} and length {}", batch, length), "both 0 or neither");
  if (options.kind == CacheKind::fixed && length > static_cast<std::size_t>(*options.capacity))
    corrupt(fmt::format("length {} and capacity {}", length, *options.capacity), "a length within the capacity");
  const auto window = options.window ? static_cast<std::size_t>(std::min(*options.window, *options.capacity)) : 0;
  if (options.window ? !possible_gone(length, gone, window) : gone != 0)
    corrupt(fmt::format("gone {} with length {}", gone, length), "a number that this kind of cache can have lost");
}

std::span<const std::byte> read_tensor(const SafetensorsFile& file, const std::string& name, Dtype dtype, const std::vector<std::size_t>& shape) {
  const TensorView* tensor = file.find(name);
  if (tensor == nullptr) corrupt("no tensor " + name, {});
  if (tensor->dtype != dtype || tensor->shape != shape)
    corrupt(fmt::format("tensor {} is {} [{}]", name, dtype_name(tensor->dtype), fmt::join(tensor->shape, ", ")),
            fmt::format("{} [{}]", dtype_name(dtype), fmt::join(shape, ", ")));
  return tensor->bytes;
}

std::vector<float> read_floats(const SafetensorsFile& file, const std::string& name, const std::vector<std::size_t>& shape) {
  const auto bytes = read_tensor(file, name, Dtype::f32, shape);
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), bytes.size());
  return floats;
}

PastMask read_mask(const SafetensorsFile& file, std::size_t batch, std::size_t length) {
  if (length == 0) return {};
  const auto bytes = read_tensor(file, "mask", Dtype::u8, {batch, length});
  const std::span bits(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  const auto wrong = std::ranges::find_if(bits, [](std::uint8_t bit) { return bit > 1; });
  if (wrong != bits.end()) corrupt(fmt::format("mask element {} is {}", wrong - bits.begin(), *wrong), "0 or 1");
  return PastMask(batch, length, bits);
}

void read_layers(const SafetensorsFile& file, const KvShape& shape, SavedCache& saved) {
  const std::size_t batch = saved.mask.batch(), columns = saved.length - saved.gone;
  const std::vector<std::size_t> extents{batch, shape.n_head, columns, shape.head_dim};
  const std::size_t tensors = (saved.length > 0 ? 1U : 0U) + (columns > 0 ? 2 * shape.n_layer : 0);
  if (file.tensors().size() != tensors) corrupt(fmt::format("{} tensors", file.tensors().size()), std::to_string(tensors));
  for (std::size_t layer = 0; layer < shape.n_layer; ++layer) {
    KvArrays& arrays = saved.layers.emplace_back(KvArrays{{}, {}, batch, columns});
    if (columns == 0) continue;
    arrays.keys = read_floats(file, tensor_name(layer, "keys"), extents);
    arrays.values = read_floats(file, tensor_name(layer, "values"), extents);
  }
}

}  // namespace

std::vector<std::byte> encode_saved_cache(const SavedCache& saved, const ModelIdentity& owner) {
  const std::vector<std::uint8_t> bits = saved.mask.bits();
  std::vector<TensorToWrite> tensors;
  if (!bits.empty()) tensors.push_back({"mask", Dtype::u8, {saved.mask.batch(), saved.length}, std::as_bytes(std::span(bits))});
  if (saved.gone < saved.length)
    for (std::size_t layer = 0; layer < saved.layers.size(); ++layer) add_layer(saved, layer, shape_of(owner.model().config()), tensors);
  return encode_safetensors({{"kvproof", document_text(saved, owner)}}, tensors);
}

SavedCache decode_saved_cache(std::vector<std::byte> bytes, const ModelIdentity& owner) {
  const SafetensorsFile file = SafetensorsFile::from_bytes(std::move(bytes), kWhere);
  const nlohmann::json document = read_document(file);
  SavedCache saved;
  saved.options = read_options(document);
  const std::size_t batch = number_field(document, "batch");
  saved.length = number_field(document, "length");
  saved.gone = number_field(document, "gone");
  check_lengths(saved.options, batch, saved.length, saved.gone);
  if (!field(document, "model").is_object()) corrupt("`model` is " + field(document, "model").dump(), "an object");
  check_model(field(document, "model") == nlohmann::json::parse(owner.text()));
  saved.mask = read_mask(file, batch, saved.length);
  read_layers(file, shape_of(owner.model().config()), saved);
  return saved;
}

}  // namespace kvproof
