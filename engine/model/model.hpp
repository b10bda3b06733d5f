#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/weights/weights.hpp"

namespace kvproof {

/// y = x W + b with W [in, out] row-major, as GPT-2's Conv1D stores it.
struct Linear {
  std::span<const float> weight;  // [in, out]
  std::span<const float> bias;    // [out]
};

struct LayerNorm {
  std::span<const float> weight, bias;  // [n_embd]
};

/// One transformer block; shapes from the config.
struct Block {
  LayerNorm ln_1;
  Linear attn_qkv;   // [n_embd, 3 * n_embd]: Q, K, V side by side
  Linear attn_proj;  // [n_embd, n_embd]
  LayerNorm ln_2;
  Linear mlp_fc;     // [n_embd, n_inner]
  Linear mlp_proj;   // [n_inner, n_embd]
};

/// A GPT-2 ready to run: views of float matrices. F32 weights are read from the map without a second copy; F16 and BF16 are
/// widened once.
///
/// Threads   immutable: any number of threads.
class Model {
 public:
  /// Errors DataError as Weights::open.
  [[nodiscard]] static std::shared_ptr<const Model> open(const std::filesystem::path& folder);

  [[nodiscard]] const Config& config() const noexcept { return weights_.config(); }
  [[nodiscard]] const Weights& weights() const noexcept { return weights_; }

  std::span<const float> wte;      // [vocab_size, n_embd]
  std::span<const float> wpe;      // [n_positions, n_embd]
  std::vector<Block> blocks;       // [n_layer]
  LayerNorm ln_f;
  std::span<const float> lm_head;  // [vocab_size, n_embd]

 private:
  explicit Model(Weights weights);
  [[nodiscard]] std::span<const float> matrix(const std::string& name);
  [[nodiscard]] Block block(std::size_t layer);
  Weights weights_;
  std::vector<std::vector<float>> widened_;  // F16 and BF16 tensors as float; moving the outer vector leaves the views valid
};

}  // namespace kvproof
