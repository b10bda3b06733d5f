#pragma once
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/safetensors/test_files.hpp"
#include "engine/safetensors/writer.hpp"
#include "engine/weights/float16.hpp"
#include "engine/weights/tensor_table.hpp"

namespace kvproof::test {

/// A tensor of a test model, with its bytes.
struct ModelTensor {
  Dtype dtype = Dtype::f32;
  std::vector<std::size_t> shape;
  std::vector<std::byte> bytes;
};

/// A small model as data, to be changed and then written.
struct TestModel {
  nlohmann::json config = {{"n_embd", 4}, {"n_head", 2}, {"n_layer", 2}, {"vocab_size", 5}, {"n_positions", 3}, {"n_inner", 6}};
  std::map<std::string, ModelTensor> tensors;

  void add(const std::string& name, Dtype dtype, std::vector<std::size_t> shape, float first) {
    std::size_t count = 1;
    for (const std::size_t extent : shape) count *= extent;
    ModelTensor tensor{dtype, std::move(shape), {}};
    for (std::size_t i = 0; i < count; ++i) {
      const float value = first + static_cast<float>(i) / 64;  // exact in all three types for small first
      append(tensor, value);
    }
    tensors[name] = std::move(tensor);
  }

  void write_shard(const std::filesystem::path& path, const std::function<bool(const std::string&)>& holds) const {
    std::vector<TensorToWrite> list;
    for (const auto& [name, tensor] : tensors)
      if (holds(name)) list.push_back({name, tensor.dtype, tensor.shape, tensor.bytes});
    write_safetensors(path, {{"format", "pt"}}, list);
  }

  void write(const std::filesystem::path& folder) const {
    write_text(folder / "config.json", config.dump());
    write_shard(folder / "model.safetensors", [](const std::string&) { return true; });
  }

 private:
  static void append(ModelTensor& tensor, float value) {
    const std::uint16_t narrow = tensor.dtype == Dtype::f16 ? f16_from_float(value) : bf16_from_float(value);
    const auto bytes = tensor.dtype == Dtype::f32 ? std::as_bytes(std::span(&value, 1)) : std::as_bytes(std::span(&narrow, 1));
    tensor.bytes.insert(tensor.bytes.end(), bytes.begin(), bytes.end());
  }
};

/// The model with every tensor of its table, element i of tensor number t being t/16 + i/64 (exact in F32 and F16).
inline TestModel test_model(const std::string& prefix, Dtype dtype, bool tied) {
  TestModel model;
  model.config["tie_word_embeddings"] = tied;
  float first = 0;
  for (const auto& expected : expected_tensors(parse_config(model.config, "test"))) {
    model.add(expected.name == "lm_head.weight" ? expected.name : prefix + expected.name, dtype, expected.shape, first);
    first += 0.0625F;
  }
  return model;
}

}  // namespace kvproof::test
