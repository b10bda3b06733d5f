#include "harness/trace/golden_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/error.hpp"
#include "engine/safetensors/json.hpp"
#include "engine/safetensors/text.hpp"
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
  if (format != "kvproof-golden") throw DataError({fields.where(), fmt::format("format is {}", shown(format)), "\"kvproof-golden\"", ""});
  const auto version = fields.integers("version");
  if (version.size() != 2 || version[0] != 1)
    throw DataError({fields.where(), fmt::format("version is {}", cut(fmt::format("[{}]", fmt::join(version, ", ")), 60)), "[1, 0]", "A newer kvproof may read it."});
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

  /// [batch][n]; with no row nothing is allocated, whatever n claims to be.
  Rows ids(std::size_t step, std::size_t batch, std::int64_t max_new_tokens) {
    const TensorView& view = take(step, "ids");
    if (view.dtype != Dtype::i64) wrong_dtype(view, "I64");
    if (view.shape.size() != 2 || view.shape[0] != batch) require_shape(view.name, view.shape, {batch, 1});
    const std::size_t n = view.shape[1];
    if (n < 1 || n > static_cast<std::uint64_t>(std::max<std::int64_t>(0, max_new_tokens)))
      throw DataError({file_.where(), fmt::format("tensor {} has {} ids a row", view.name, n), fmt::format("1 to {}", max_new_tokens), ""});
    Rows rows(batch);
    for (std::size_t b = 0; b < batch; ++b) {
      rows[b].resize(n);
      std::memcpy(rows[b].data(), view.bytes.data() + b * n * sizeof(std::int64_t), n * sizeof(std::int64_t));
    }
    return rows;
  }

  /// Rows that count hold numbers: no engine could come close to a NaN.
  void require_finite(const std::string& name, const Tensor& tensor, const std::vector<std::uint8_t>& compared) const {
    const std::size_t heads = tensor.shape.size() == 4 ? tensor.shape[1] : 1, columns = tensor.shape[tensor.shape.size() - 2];
    const std::size_t width = tensor.shape.back();
    for (std::size_t i = 0; i < tensor.values.size(); ++i) {
      const std::size_t row = i / width / columns / heads, column = i / width % columns;
      if (compared[row * columns + column] != 0 && !std::isfinite(tensor.values[i]))
        throw DataError({file_.where(), fmt::format("tensor {} holds {} in a row that counts", name, tensor.values[i]), "finite numbers", ""});
    }
  }

  void require_shape(const std::string& name, const Shape& found, const Shape& expected) const {
    if (found == expected) return;
    throw DataError({file_.where(), fmt::format("tensor {} has shape [{}]", name, fmt::join(found, ", ")),
                     fmt::format("[{}]", fmt::join(expected, ", ")), ""});
  }

  void done() const {
    for (const TensorView& view : file_.tensors())
      if (!taken_.contains(view.name)) throw DataError({file_.where(), fmt::format("tensor {} belongs to no step", shown(view.name)), "", ""});
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
  tensors.require_finite(tensor_name(step, "logits"), *recorded.logits, recorded.compared);
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
  tensors.require_finite(tensor_name(step, "keys"), *recorded.keys, recorded.compared);
  tensors.require_finite(tensor_name(step, "values"), *recorded.values, recorded.compared);
  golden.recorded[step] = std::move(recorded);
}

void record_generate(std::size_t step, const Generate& call, std::size_t vocab_size, Tensors& tensors, GoldenFile& golden) {
  Recorded recorded;
  recorded.ids = tensors.ids(step, call.input_ids.size(), call.max_new_tokens);
  for (const auto& row : *recorded.ids)
    for (const std::int64_t id : row)
      if (id < 0 || static_cast<std::uint64_t>(id) >= vocab_size)
        throw DataError({golden.where, fmt::format("tensor {} holds id {}", tensor_name(step, "ids"), id), fmt::format("0 to {}", vocab_size - 1), ""});
  golden.recorded[step] = std::move(recorded);
}

void record_step(std::size_t i, std::size_t vocab_size, Tensors& tensors, GoldenFile& golden) {
  const Step& step = golden.trace[i];
  if (step.error) return;
  if (const auto* forward = std::get_if<Forward>(&step.call)) record_forward(i, *forward, vocab_size, tensors, golden);
  if (std::holds_alternative<Read>(step.call)) record_read(i, tensors, golden);
  if (const auto* generate = std::get_if<Generate>(&step.call)) record_generate(i, *generate, vocab_size, tensors, golden);
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
