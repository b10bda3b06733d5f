#include "engine/weights/tensor_table.hpp"

#include <fmt/format.h>

namespace kvproof {
namespace {

void add_block(std::vector<ExpectedTensor>& table, std::size_t layer, const Config& config) {
  const std::size_t width = config.n_embd, inner = config.n_inner;
  const auto add = [&](std::string_view name, std::vector<std::size_t> shape, std::string_view formula) {
    table.push_back({fmt::format("h.{}.{}", layer, name), std::move(shape), formula});
  };
  add("ln_1.weight", {width}, "n_embd");
  add("ln_1.bias", {width}, "n_embd");
  add("attn.c_attn.weight", {width, 3 * width}, "n_embd x 3*n_embd");
  add("attn.c_attn.bias", {3 * width}, "3*n_embd");
  add("attn.c_proj.weight", {width, width}, "n_embd x n_embd");
  add("attn.c_proj.bias", {width}, "n_embd");
  add("ln_2.weight", {width}, "n_embd");
  add("ln_2.bias", {width}, "n_embd");
  add("mlp.c_fc.weight", {width, inner}, "n_embd x n_inner");
  add("mlp.c_fc.bias", {inner}, "n_inner");
  add("mlp.c_proj.weight", {inner, width}, "n_inner x n_embd");
  add("mlp.c_proj.bias", {width}, "n_embd");
}

}  // namespace

std::vector<ExpectedTensor> expected_tensors(const Config& config) {
  std::vector<ExpectedTensor> table;
  table.push_back({"wte.weight", {config.vocab_size, config.n_embd}, "vocab_size x n_embd"});
  table.push_back({"wpe.weight", {config.n_positions, config.n_embd}, "n_positions x n_embd"});
  for (std::size_t layer = 0; layer < config.n_layer; ++layer) add_block(table, layer, config);
  table.push_back({"ln_f.weight", {config.n_embd}, "n_embd"});
  table.push_back({"ln_f.bias", {config.n_embd}, "n_embd"});
  if (!config.tie_word_embeddings) table.push_back({"lm_head.weight", {config.vocab_size, config.n_embd}, "vocab_size x n_embd"});
  return table;
}

}  // namespace kvproof
