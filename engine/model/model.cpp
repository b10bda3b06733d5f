#include "engine/model/model.hpp"

#include <fmt/format.h>

#include <utility>

namespace kvproof {
namespace {

/// The elements of an F32 tensor where they lie; the reader has checked size and alignment.
std::span<const float> in_place(const TensorView& tensor) noexcept {
  return {reinterpret_cast<const float*>(tensor.bytes.data()), tensor.bytes.size() / sizeof(float)};
}

}  // namespace

Model::Model(Weights weights) : weights_(std::move(weights)) {
  wte = matrix("wte.weight");
  wpe = matrix("wpe.weight");
  blocks.reserve(config().n_layer);
  for (std::size_t layer = 0; layer < config().n_layer; ++layer) blocks.push_back(block(layer));
  ln_f = {matrix("ln_f.weight"), matrix("ln_f.bias")};
  const bool tied = weights_.tensor("lm_head.weight").bytes.data() == weights_.tensor("wte.weight").bytes.data();
  lm_head = tied ? wte : matrix("lm_head.weight");
}

std::shared_ptr<const Model> Model::open(const std::filesystem::path& folder) {
  return std::shared_ptr<const Model>(new Model(Weights::open(folder)));
}

std::span<const float> Model::matrix(const std::string& name) {
  const TensorView& tensor = weights_.tensor(name);
  if (tensor.dtype == Dtype::f32) return in_place(tensor);
  return widened_.emplace_back(to_floats(tensor));
}

Block Model::block(std::size_t layer) {
  const auto part = [&](const char* name, const char* kind) { return matrix(fmt::format("h.{}.{}.{}", layer, name, kind)); };
  const auto norm = [&](const char* name) { return LayerNorm{part(name, "weight"), part(name, "bias")}; };
  const auto linear = [&](const char* name) { return Linear{part(name, "weight"), part(name, "bias")}; };
  Block made;
  made.ln_1 = norm("ln_1");
  made.attn_qkv = linear("attn.c_attn");
  made.attn_proj = linear("attn.c_proj");
  made.ln_2 = norm("ln_2");
  made.mlp_fc = linear("mlp.c_fc");
  made.mlp_proj = linear("mlp.c_proj");
  return made;
}

}  // namespace kvproof
