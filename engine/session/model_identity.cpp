#include "engine/session/model_identity.hpp"

#include <nlohmann/json.hpp>

namespace kvproof {
namespace {

std::string describe(const Model& model) {
  const Config& config = model.config();
  const nlohmann::json numbers{
      {"activation", static_cast<int>(config.activation_function)},
      {"layer_norm_epsilon", config.layer_norm_epsilon},
      {"n_embd", config.n_embd},
      {"n_head", config.n_head},
      {"n_inner", config.n_inner},
      {"n_layer", config.n_layer},
      {"n_positions", config.n_positions},
      {"reorder_and_upcast_attn", config.reorder_and_upcast_attn},
      {"scale_attn_by_inverse_layer_idx", config.scale_attn_by_inverse_layer_idx},
      {"scale_attn_weights", config.scale_attn_weights},
      {"tie_word_embeddings", config.tie_word_embeddings},
      {"vocab_size", config.vocab_size}};
  return nlohmann::json{{"config", numbers}, {"weights_sha256", model.weights().sha256()}}.dump();
}

}  // namespace

const std::string& ModelIdentity::text() const {
  std::call_once(computed_, [this] { text_ = describe(*model_); });
  return text_;
}

}  // namespace kvproof
