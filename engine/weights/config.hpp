#pragma once
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace kvproof {

/// The activations GPT-2 checkpoints name. gelu_new and gelu_pytorch_tanh are the same formula.
enum class Activation { gelu_tanh, gelu_fast, gelu_erf, relu, silu, tanh };

/// What of a Transformers GPT-2 config.json changes the numbers. Names are the file's.
struct Config {
  std::size_t vocab_size = 50257;
  std::size_t n_positions = 1024;
  std::size_t n_embd = 768;
  std::size_t n_layer = 12;
  std::size_t n_head = 12;
  std::size_t n_inner = 3072;  ///< the file's null means 4 * n_embd
  Activation activation_function = Activation::gelu_tanh;
  double layer_norm_epsilon = 1e-5;
  bool scale_attn_weights = true;
  bool scale_attn_by_inverse_layer_idx = false;
  bool reorder_and_upcast_attn = false;
  bool tie_word_embeddings = true;

  [[nodiscard]] std::size_t head_dim() const noexcept { return n_embd / n_head; }
  /// What attention scores of `layer` are multiplied with: 1/sqrt(head_dim) if scale_attn_weights, / (layer + 1) if by inverse layer.
  [[nodiscard]] double attention_scale(std::size_t layer) const;
};

/// Reads a config.json. Missing fields take Transformers' defaults; unknown fields are ignored, as Transformers does.
///
/// Errors    DataError naming the field: wrong type, out of range, n_embd not a multiple of n_head, or a feature that
///           cannot be honoured (add_cross_attention, another model_type, an unknown activation_function).
[[nodiscard]] Config parse_config(const nlohmann::json& document, const std::string& where);

}  // namespace kvproof
