#include "harness/trace/golden_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/error.hpp"
#include "engine/safetensors/json.hpp"
#include "engine/weights/weights.hpp"
#include "harness/trace/fields.hpp"
#include "harness/trace/step_json.hpp"

namespace kvproof::harness {
namespace {

using Shape = std::vector<std::size_t>;

nlohmann::json document_of(const SafetensorsFile& file) {
  const auto& metadata = file.metadata();
  const auto found = metadata.find("kvproof");
  if (found == metadata.end() || metadata.size() != 1)
    throw DataError({file.where(), fmt::format("__metadata__ has {} keys", metadata.size()), "exactly one, \"kvproof\"", "Is this a golden file?"});
  return parse_json(found->second, file.where() + ": kvproof document");
}

void require_version(Fields& fields) {
  const std::string format = fields.text("format");
  if (format != "kvproof-golden") throw DataError({fields.where(), fmt::format("format is \"{}\"", format), "\"kvproof-golden\"", ""});
  const auto version = fields.integers("version");
  if (version.size() != 2 || version[0] != 1)
    throw DataError({fields.where(), fmt::format("version is [{}]", fmt::join(version, ", ")), "[1, 0]", "A newer kvproof may read it."});
}

void read_tolerance(const nlohmann::json& document, GoldenFile& golden) {
  Fields fields(document, golden.where + ": tolerance");
  golden.atol = fields.number("atol");
  golden.rtol = fields.number("rtol");
  if (!(golden.atol >= 0 && golden.rtol >= 0 && golden.atol + golden.rtol > 0))
    throw DataError({fields.where(), fmt::format("atol {} and rtol {}", golden.atol, golden.rtol), "two numbers >= 0, not both 0", ""});
}

/// The tensors of a file, each asked for once; what is left over is an error.
class Tensors {
 public:
  explicit Tensors(const SafetensorsFile& file) : file_(file) {}

  const TensorView& take(std::size_t step, const char* what) {
    const std::string name = tensor_name(step, what);
    const TensorView* view = file_.find(name);
    if (view == nullptr) throw DataError({file_.where(), fmt::format("tensor {} is missing", name), "", "The trace's step calls for it."});
    taken_.insert(name);
    return *view;
  }

  Tensor floats(std::size_t step, const char* what) {
    const TensorView& view = take(step, what);
    if (view.dtype != Dtype::f32 && view.dtype != Dtype::f64) wrong_dtype(view, "F32 or F64");
    return tensor_of(view);
  }

  std::vector<std::uint8_t> flags(std::size_t step, const Shape& shape) {
    const TensorView& view = take(step, "compared");
    if (view.dtype != Dtype::u8) wrong_dtype(view, "U8");
    require_shape(view.name, view.shape, shape);
    std::vector<std::uint8_t> flags(view.bytes.size());
    if (!flags.empty()) std::memcpy(flags.data(), view.bytes.data(), flags.size());
    if (std::ranges::any_of(flags, [](std::uint8_t flag) { return flag > 1; }))
      throw DataError({file_.where(), fmt::format("tensor {} has a value above 1", view.name), "0 or 1", ""});
    return flags;
  }

  Rows ids(std::size_t step, std::size_t batch) {
    const TensorView& view = take(step, "ids");
    if (view.dtype != Dtype::i64) wrong_dtype(view, "I64");
    if (view.shape.size() != 2 || view.shape[0] != batch) require_shape(view.name, view.shape, {batch, 1});
    Rows rows(batch, std::vector<std::int64_t>(view.shape[1]));
    for (std::size_t b = 0; b < batch && view.shape[1] != 0; ++b)
      std::memcpy(rows[b].data(), view.bytes.data() + b * view.shape[1] * 8, view.shape[1] * 8);
    return rows;
  }

  void require_shape(const std::string& name, const Shape& found, const Shape& expected) const {
    if (found == expected) return;
    throw DataError({file_.where(), fmt::format("tensor {} has shape [{}]", name, fmt::join(found, ", ")),
                     fmt::format("[{}]", fmt::join(expected, ", ")), ""});
  }

  void done() const {
    for (const TensorView& view : file_.tensors())
      if (!taken_.contains(view.name)) throw DataError({file_.where(), fmt::format("tensor {} belongs to no step", view.name), "", ""});
  }

 private:
  [[noreturn]] void wrong_dtype(const TensorView& view, const char* expected) const {
    throw DataError({file_.where(), fmt::format("tensor {} is {}", view.name, dtype_name(view.dtype)), expected, ""});
  }

  const SafetensorsFile& file_;
  std::set<std::string> taken_;
};

std::size_t columns_of(const Rows& rows) { return rows.empty() ? 0 : rows.front().size(); }

void record_forward(std::size_t step, const Forward& call, std::size_t vocab_size, Tensors& tensors, GoldenFile& golden) {
  if (call.logits == "none") return;
  const std::size_t batch = call.input_ids.size(), columns = call.logits == "last" ? 1 : columns_of(call.input_ids);
  Recorded recorded;
  recorded.logits = tensors.floats(step, "logits");
  tensors.require_shape(tensor_name(step, "logits"), recorded.logits->shape, {batch, columns, vocab_size});
  recorded.compared = tensors.flags(step, {batch, columns});
  golden.recorded[step] = std::move(recorded);
}

void record_read(std::size_t step, Tensors& tensors, GoldenFile& golden) {
  Recorded recorded;
  recorded.keys = tensors.floats(step, "keys");
  recorded.values = tensors.floats(step, "values");
  const Shape& shape = recorded.keys->shape;
  if (shape.size() != 4) tensors.require_shape(tensor_name(step, "keys"), shape, {0, 0, 0, 0});
  tensors.require_shape(tensor_name(step, "values"), recorded.values->shape, shape);
  recorded.compared = tensors.flags(step, {shape[0], shape[2]});
  golden.recorded[step] = std::move(recorded);
}

void record_step(std::size_t i, std::size_t vocab_size, Tensors& tensors, GoldenFile& golden) {
  const Step& step = golden.trace[i];
  if (step.error) return;
  if (const auto* forward = std::get_if<Forward>(&step.call)) record_forward(i, *forward, vocab_size, tensors, golden);
  if (std::holds_alternative<Read>(step.call)) record_read(i, tensors, golden);
  if (const auto* generate = std::get_if<Generate>(&step.call)) golden.recorded[i].ids = tensors.ids(i, generate->input_ids.size());
}

}  // namespace

std::string tensor_name(std::size_t step, const char* what) { return fmt::format("step.{}.{}", step, what); }

Tensor tensor_of(const TensorView& view) {
  if (view.dtype != Dtype::f64) return {view.shape, to_doubles(view)};
  Tensor tensor{view.shape, std::vector<double>(view.bytes.size() / sizeof(double))};
  if (!tensor.values.empty()) std::memcpy(tensor.values.data(), view.bytes.data(), view.bytes.size());
  return tensor;
}

GoldenFile parse_golden(const SafetensorsFile& file) {
  const nlohmann::json document = document_of(file);
  Fields fields(document, file.where());
  require_version(fields);
  GoldenFile golden;
  golden.where = file.where();
  golden.suite = fields.text("suite");
  golden.weights_sha256 = fields.text("weights_sha256");
  const nlohmann::json& config = fields.object("config");
  golden.config = config.dump();
  golden.producer = fields.object("producer").dump();
  read_tolerance(fields.object("tolerance"), golden);
  golden.trace = trace_from_json(fields.array("trace"), file.where());
  Tensors tensors(file);
  const std::size_t vocab_size = parse_config(config, file.where() + ": config").vocab_size;
  for (std::size_t i = 0; i < golden.trace.size(); ++i) record_step(i, vocab_size, tensors, golden);
  tensors.done();
  return golden;
}

GoldenFile read_golden(const std::filesystem::path& path) { return parse_golden(SafetensorsFile::open(path)); }

}  // namespace kvproof::harness
