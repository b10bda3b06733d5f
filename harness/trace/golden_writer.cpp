#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "engine/base/error.hpp"
#include "engine/safetensors/writer.hpp"
#include "harness/trace/golden_file.hpp"
#include "harness/trace/step_json.hpp"

namespace kvproof::harness {
namespace {

/// Owns the bytes of the tensors to write.
class Payload {
 public:
  void add_floats(std::string name, const Tensor& tensor) {
    const bool narrow = std::ranges::all_of(tensor.values, [](double v) { return static_cast<double>(static_cast<float>(v)) == v; });
    if (!narrow) return add(std::move(name), Dtype::f64, tensor.shape, tensor.values);
    add(std::move(name), Dtype::f32, tensor.shape, std::vector<float>(tensor.values.begin(), tensor.values.end()));
  }

  template <typename T>
  void add(std::string name, Dtype dtype, std::vector<std::size_t> shape, const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    buffers_.push_back(std::make_unique<std::vector<std::byte>>(bytes.begin(), bytes.end()));
    tensors_.push_back({std::move(name), dtype, std::move(shape), *buffers_.back()});
  }

  [[nodiscard]] std::span<const TensorToWrite> tensors() const { return tensors_; }

 private:
  std::vector<std::unique_ptr<std::vector<std::byte>>> buffers_;
  std::vector<TensorToWrite> tensors_;
};

void add_ids(Payload& payload, std::string name, const Rows& ids) {
  std::vector<std::int64_t> flat;
  for (const auto& row : ids) flat.insert(flat.end(), row.begin(), row.end());
  payload.add(std::move(name), Dtype::i64, {ids.size(), ids.empty() ? 0 : ids.front().size()}, flat);
}

void add_step(Payload& payload, std::size_t step, const Recorded& recorded) {
  if (recorded.ids) return add_ids(payload, tensor_name(step, "ids"), *recorded.ids);
  if (!recorded.logits && !(recorded.keys && recorded.values))
    throw ShapeError({"write_golden", fmt::format("step {} records nothing", step), "logits, keys and values, or ids", ""});
  std::vector<std::size_t> compared;
  if (recorded.logits) {
    payload.add_floats(tensor_name(step, "logits"), *recorded.logits);
    compared = {recorded.logits->shape[0], recorded.logits->shape[1]};
  } else {
    payload.add_floats(tensor_name(step, "keys"), *recorded.keys);
    payload.add_floats(tensor_name(step, "values"), *recorded.values);
    compared = {recorded.keys->shape[0], recorded.keys->shape[2]};
  }
  payload.add(tensor_name(step, "compared"), Dtype::u8, std::move(compared), recorded.compared);
}

nlohmann::ordered_json document_of(const GoldenFile& golden) {
  nlohmann::ordered_json document = {{"format", "kvproof-golden"}, {"version", {1, 0}}, {"suite", golden.suite},
                                     {"weights_sha256", golden.weights_sha256}};
  document["config"] = nlohmann::ordered_json::parse(golden.config);
  document["producer"] = nlohmann::ordered_json::parse(golden.producer);
  document["tolerance"] = {{"atol", golden.atol}, {"rtol", golden.rtol}};
  document["trace"] = nlohmann::ordered_json::array();
  for (const Step& step : golden.trace) document["trace"].push_back(step_to_json(step));
  return document;
}

}  // namespace

void write_golden(const std::filesystem::path& path, const GoldenFile& golden) {
  Payload payload;
  for (const auto& [step, recorded] : golden.recorded) add_step(payload, step, recorded);
  write_safetensors(path, {{"kvproof", document_of(golden).dump()}}, payload.tensors());
}

}  // namespace kvproof::harness
