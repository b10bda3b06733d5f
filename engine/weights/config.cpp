#include "engine/weights/config.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "engine/base/error.hpp"
#include "engine/safetensors/text.hpp"

// Limits: far above any GPT-2, and low enough that the product of any three sizes of one model fits 64 bits.

namespace kvproof {
namespace {

using nlohmann::json;

constexpr std::size_t kMostVocabulary = 0x7fffffff;  // BLAS counts columns in 32 bits
constexpr std::size_t kMostPositions = std::size_t{1} << 24U;
constexpr std::size_t kMostWidth = std::size_t{1} << 20U;
constexpr std::size_t kMostInner = std::size_t{1} << 24U;
constexpr std::size_t kMostLayers = std::size_t{1} << 12U;

constexpr std::array<std::pair<std::string_view, Activation>, 8> kActivations{{{"gelu_new", Activation::gelu_tanh},
                                                                               {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                                               {"gelu_fast", Activation::gelu_fast},
                                                                               {"gelu", Activation::gelu_erf},
                                                                               {"relu", Activation::relu},
                                                                               {"silu", Activation::silu},
                                                                               {"swish", Activation::silu},
                                                                               {"tanh", Activation::tanh}}};

std::string value_text(const json& value) {
  return cut(value.dump(-1, ' ', false, json::error_handler_t::replace), 60);
}

class Fields {
 public:
  Fields(const json& document, const std::string& where) : document_(document), where_(where) {
    if (!document.is_object()) throw DataError({where, "config is " + value_text(document), "a JSON object", ""});
  }

  [[noreturn]] void refuse(std::string_view name, std::string expected, std::string next = "") const {
    throw DataError({where_, fmt::format("{} is {}", name, value_text(document_.at(name))), std::move(expected), std::move(next)});
  }

  // The field, or null if it is absent.
  [[nodiscard]] const json* find(std::string_view name) const {
    const auto at = document_.find(name);
    return at == document_.end() ? nullptr : &*at;
  }

  [[nodiscard]] std::size_t size(std::string_view name, std::size_t absent, std::size_t most) const {
    const json* value = find(name);
    if (value == nullptr) return absent;
    const std::string expected = fmt::format("a whole number from 1 to {}", most);
    const bool whole = value->is_number_unsigned() || (value->is_number_integer() && value->get<std::int64_t>() >= 0);
    if (!whole) refuse(name, expected);
    const auto number = value->get<std::uint64_t>();
    if (number < 1 || number > most) refuse(name, expected);
    return number;
  }

  // Transformers knows some sizes by a second, general name, and takes either.
  [[nodiscard]] std::size_t size(std::string_view name, std::string_view alias, std::size_t absent, std::size_t most) const {
    if (find(alias) == nullptr) return size(name, absent, most);
    const std::size_t value = size(alias, absent, most);
    if (find(name) != nullptr && size(name, absent, most) != value)
      refuse(alias, fmt::format("{}, the value of {}, which is another name for it", value_text(*find(name)), name));
    return value;
  }

  [[nodiscard]] bool boolean(std::string_view name, bool absent) const {
    const json* value = find(name);
    if (value == nullptr) return absent;
    if (!value->is_boolean()) refuse(name, "true or false");
    return value->get<bool>();
  }

  [[nodiscard]] double number(std::string_view name, double absent, double most) const {
    const json* value = find(name);
    if (value == nullptr) return absent;
    const std::string expected = fmt::format("a number from 0 to {}", most);
    if (!value->is_number()) refuse(name, expected);
    const auto number = value->get<double>();
    if (!(number >= 0 && number <= most)) refuse(name, expected);
    return number;
  }

 private:
  const json& document_;
  const std::string& where_;
};

Activation activation(const Fields& fields) {
  const json* value = fields.find("activation_function");
  if (value == nullptr) return Activation::gelu_tanh;
  if (value->is_string())
    for (const auto& [name, formula] : kActivations)
      if (value->get_ref<const std::string&>() == name) return formula;
  fields.refuse("activation_function", "one of gelu_new, gelu_pytorch_tanh, gelu_fast, gelu, relu, silu, swish, tanh");
}

// What would change the numbers in a way this engine does not know must not be passed over.
void refuse_other_models(const Fields& fields) {
  if (const json* type = fields.find("model_type"); type != nullptr && *type != "gpt2") fields.refuse("model_type", "\"gpt2\"");
  if (fields.boolean("add_cross_attention", false)) fields.refuse("add_cross_attention", "false: there is no encoder here");
  if (const json* heads = fields.find("pruned_heads"); heads != nullptr && !heads->empty()) fields.refuse("pruned_heads", "no pruned heads");
  if (const json* quantized = fields.find("quantization_config"); quantized != nullptr && !quantized->is_null())
    fields.refuse("quantization_config", "weights in F32, F16 or BF16");
}

}  // namespace

double Config::attention_scale(std::size_t layer) const {
  const double scale = scale_attn_weights ? 1.0 / std::sqrt(static_cast<double>(head_dim())) : 1.0;
  return scale_attn_by_inverse_layer_idx ? scale / static_cast<double>(layer + 1) : scale;
}

Config parse_config(const json& document, const std::string& where) {
  const Fields fields(document, where);
  refuse_other_models(fields);
  Config config;
  config.vocab_size = fields.size("vocab_size", config.vocab_size, kMostVocabulary);
  config.n_positions = fields.size("n_positions", "max_position_embeddings", config.n_positions, kMostPositions);
  config.n_embd = fields.size("n_embd", "hidden_size", config.n_embd, kMostWidth);
  config.n_layer = fields.size("n_layer", "num_hidden_layers", config.n_layer, kMostLayers);
  config.n_head = fields.size("n_head", "num_attention_heads", config.n_head, kMostWidth);
  if (config.n_embd % config.n_head != 0)
    throw DataError({where, fmt::format("n_head is {}", config.n_head), fmt::format("a divisor of n_embd, {}", config.n_embd), ""});
  const json* inner = fields.find("n_inner");
  config.n_inner = inner == nullptr || inner->is_null() ? 4 * config.n_embd : fields.size("n_inner", 0, kMostInner);
  config.activation_function = activation(fields);
  config.layer_norm_epsilon = fields.number("layer_norm_epsilon", config.layer_norm_epsilon, 1.0);
  config.scale_attn_weights = fields.boolean("scale_attn_weights", config.scale_attn_weights);
  config.scale_attn_by_inverse_layer_idx = fields.boolean("scale_attn_by_inverse_layer_idx", config.scale_attn_by_inverse_layer_idx);
  config.reorder_and_upcast_attn = fields.boolean("reorder_and_upcast_attn", config.reorder_and_upcast_attn);
  config.tie_word_embeddings = fields.boolean("tie_word_embeddings", config.tie_word_embeddings);
  return config;
}

}  // namespace kvproof
