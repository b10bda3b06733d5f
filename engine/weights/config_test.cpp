#include "engine/weights/config.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>

#include <nlohmann/json.hpp>

#include "engine/safetensors/json.hpp"
#include "engine/safetensors/test_files.hpp"

namespace {

using kvproof::Activation;
using nlohmann::json;

kvproof::Config parsed(const std::string& text) { return kvproof::parse_config(kvproof::parse_json(text, "config.json"), "config.json"); }

std::string refusal(const std::string& text) {
  return kvproof::test::message_of<kvproof::DataError>([&] { (void)parsed(text); });
}

std::string with(const std::string& field, const std::string& value) { return fmt::format("{{\"{}\":{}}}", field, value); }

BOOST_AUTO_TEST_SUITE(config)

BOOST_AUTO_TEST_CASE(an_empty_config_is_the_published_gpt2) {
  const auto config = parsed("{}");
  BOOST_TEST(config.vocab_size == 50257U);
  BOOST_TEST(config.n_positions == 1024U);
  BOOST_TEST(config.n_embd == 768U);
  BOOST_TEST(config.n_layer == 12U);
  BOOST_TEST(config.n_head == 12U);
  BOOST_TEST(config.n_inner == 3072U);
  BOOST_TEST((config.activation_function == Activation::gelu_tanh));
  BOOST_TEST(config.layer_norm_epsilon == 1e-5);
  BOOST_TEST(config.scale_attn_weights);
  BOOST_TEST(!config.scale_attn_by_inverse_layer_idx);
  BOOST_TEST(!config.reorder_and_upcast_attn);
  BOOST_TEST(config.tie_word_embeddings);
}

BOOST_AUTO_TEST_CASE(every_field_is_read) {
  const auto config = parsed(R"({"model_type": "gpt2", "vocab_size": 11, "n_positions": 12, "n_embd": 15, "n_layer": 14, "n_head": 5, "n_inner": 16,
    "activation_function": "relu", "layer_norm_epsilon": 0.25, "scale_attn_weights": false, "scale_attn_by_inverse_layer_idx": true,
    "reorder_and_upcast_attn": true, "tie_word_embeddings": false, "add_cross_attention": false, "n_ctx": 1, "resid_pdrop": 0.9})");
  BOOST_TEST(config.vocab_size == 11U);
  BOOST_TEST(config.n_positions == 12U);
  BOOST_TEST(config.n_embd == 15U);
  BOOST_TEST(config.n_layer == 14U);
  BOOST_TEST(config.n_head == 5U);
  BOOST_TEST(config.head_dim() == 3U);
  BOOST_TEST(config.n_inner == 16U);
  BOOST_TEST((config.activation_function == Activation::relu));
  BOOST_TEST(config.layer_norm_epsilon == 0.25);
  BOOST_TEST(!config.scale_attn_weights);
  BOOST_TEST(config.scale_attn_by_inverse_layer_idx);
  BOOST_TEST(config.reorder_and_upcast_attn);
  BOOST_TEST(!config.tie_word_embeddings);
}

BOOST_AUTO_TEST_CASE(n_inner_null_or_absent_is_four_times_n_embd) {
  BOOST_TEST(parsed(R"({"n_embd": 24, "n_inner": null})").n_inner == 96U);
  BOOST_TEST(parsed(R"({"n_embd": 24})").n_inner == 96U);
}

BOOST_AUTO_TEST_CASE(the_general_names_of_the_sizes_are_read_too) {
  const auto config = parsed(R"({"hidden_size": 24, "max_position_embeddings": 7, "num_attention_heads": 3, "num_hidden_layers": 2})");
  BOOST_TEST(config.n_embd == 24U);
  BOOST_TEST(config.n_positions == 7U);
  BOOST_TEST(config.n_head == 3U);
  BOOST_TEST(config.n_layer == 2U);
  BOOST_TEST(parsed(R"({"n_head": 3, "num_attention_heads": 3})").n_head == 3U);
}

BOOST_AUTO_TEST_CASE(two_names_with_two_values_are_refused) {
  BOOST_TEST(refusal(R"({"n_head": 3, "num_attention_heads": 4})") ==
             "config.json: num_attention_heads is 4, expected 3, the value of n_head, which is another name for it");
}

BOOST_AUTO_TEST_CASE(every_activation_name_means_its_formula) {
  const std::pair<const char*, Activation> names[] = {{"gelu_new", Activation::gelu_tanh}, {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                      {"gelu_fast", Activation::gelu_fast}, {"gelu", Activation::gelu_erf},
                                                      {"relu", Activation::relu},           {"silu", Activation::silu},
                                                      {"swish", Activation::silu},          {"tanh", Activation::tanh}};
  for (const auto& [name, formula] : names)
    BOOST_TEST((parsed(with("activation_function", fmt::format("\"{}\"", name))).activation_function == formula), name);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_honoured_is_refused_by_name) {
  BOOST_TEST(refusal(with("activation_function", "\"gelu_10\"")) ==
             "config.json: activation_function is \"gelu_10\", expected one of gelu_new, gelu_pytorch_tanh, gelu_fast, gelu, relu, silu, swish, tanh");
  BOOST_TEST(refusal(with("add_cross_attention", "true")) == "config.json: add_cross_attention is true, expected false: there is no encoder here");
  BOOST_TEST(refusal(with("model_type", "\"llama\"")) == "config.json: model_type is \"llama\", expected \"gpt2\"");
  BOOST_TEST(refusal(with("pruned_heads", R"({"0":[1]})")).find("pruned_heads is") != std::string::npos);
  BOOST_TEST(refusal(with("quantization_config", R"({"bits":4})")).find("quantization_config is") != std::string::npos);
  for (const char* harmless : {R"({"pruned_heads":{}})", R"({"quantization_config":null})", R"({"model_type":"gpt2"})"})
    BOOST_TEST(refusal(harmless) == "accepted");
}

BOOST_AUTO_TEST_CASE(sizes_are_whole_numbers_within_limits) {
  BOOST_TEST(refusal(with("n_layer", "0")) == "config.json: n_layer is 0, expected a whole number from 1 to 4096");
  for (const char* field : {"vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "n_inner", "hidden_size"})
    for (const char* value : {"0", "-1", "1.5", "16.0", "\"16\"", "true", "[16]", "{}", "18446744073709551615", "1e30", "2147483648"})
      BOOST_TEST(refusal(with(field, value)).find(fmt::format("config.json: {} is ", field)) == 0U, field << " " << value);
  for (const char* field : {"vocab_size", "n_positions", "n_embd", "n_layer", "n_head"}) BOOST_TEST(refusal(with(field, "null")) != "accepted");
}

BOOST_AUTO_TEST_CASE(the_largest_sizes_pass_and_no_product_of_theirs_wraps) {
  const auto config = parsed(R"({"vocab_size": 2147483647, "n_positions": 16777216, "n_embd": 1048576, "n_layer": 4096, "n_head": 1048576,
    "n_inner": 16777216})");
  const double cache = 2.0 * 4.0 * static_cast<double>(config.n_layer) * static_cast<double>(config.n_positions) * static_cast<double>(config.n_embd);
  BOOST_TEST(cache < 0x1p64);
  BOOST_TEST(8.0 * static_cast<double>(config.vocab_size) * static_cast<double>(config.n_embd) < 0x1p64);
  BOOST_TEST(8.0 * static_cast<double>(config.n_inner) * static_cast<double>(config.n_embd) * static_cast<double>(config.n_layer) < 0x1p64);
}

BOOST_AUTO_TEST_CASE(switches_are_true_or_false) {
  for (const char* field : {"scale_attn_weights", "scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn", "tie_word_embeddings", "add_cross_attention"})
    for (const char* value : {"1", "null", "\"true\"", "[]"})
      BOOST_TEST(refusal(with(field, value)) == fmt::format("config.json: {} is {}, expected true or false", field, value));
}

BOOST_AUTO_TEST_CASE(epsilon_is_a_number_from_0_to_1) {
  BOOST_TEST(parsed(with("layer_norm_epsilon", "0")).layer_norm_epsilon == 0.0);
  for (const char* value : {"-1e-9", "1.5", "\"1e-5\"", "null", "true"})
    BOOST_TEST(refusal(with("layer_norm_epsilon", value)) == fmt::format("config.json: layer_norm_epsilon is {}, expected a number from 0 to 1",
                                                                        json::parse(value).dump()));
  json document = json::object();
  document["layer_norm_epsilon"] = std::nan("");
  BOOST_CHECK_THROW((void)kvproof::parse_config(document, "memory"), kvproof::DataError);
}

BOOST_AUTO_TEST_CASE(heads_must_divide_the_width) {
  BOOST_TEST(refusal(R"({"n_embd": 32, "n_head": 3})") == "config.json: n_head is 3, expected a divisor of n_embd, 32");
}

BOOST_AUTO_TEST_CASE(a_config_is_an_object) { BOOST_TEST(refusal("[1]") == "config.json: config is [1], expected a JSON object"); }

BOOST_AUTO_TEST_CASE(attention_scale_follows_both_switches) {
  auto config = parsed(R"({"n_embd": 8, "n_head": 2})");
  BOOST_TEST(config.attention_scale(3) == 0.5);
  config.scale_attn_by_inverse_layer_idx = true;
  BOOST_TEST(config.attention_scale(3) == 0.125);
  config.scale_attn_weights = false;
  BOOST_TEST(config.attention_scale(3) == 0.25);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
