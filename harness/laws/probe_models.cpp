#include "harness/laws/probe_models.hpp"

#include <iterator>

#include <nlohmann/json.hpp>

#include "engine/base/seed.hpp"
#include "engine/weights/config.hpp"

namespace kvproof::harness {
namespace {

struct Sizes {
  std::size_t n_layer, n_head, head_dim, n_positions, vocab_size;
  double deviation;
};

// Heads 2, 3, 5 against batches of 1 to 4: mostly B != H, sometimes B = H.
constexpr Sizes kSizes[] = {{2, 2, 14, 32, 29, 0.15}, {2, 3, 10, 40, 23, 0.15}, {3, 2, 12, 32, 17, 0.15}, {2, 5, 6, 48, 31, 0.15}};

ModelSource source_of(const Sizes& sizes, std::uint64_t seed) {
  const nlohmann::json config = {{"model_type", "gpt2"}, {"activation_function", "gelu_new"}, {"layer_norm_epsilon", 1e-5},
                                 {"tie_word_embeddings", true}, {"scale_attn_weights", true}, {"n_layer", sizes.n_layer}, {"n_head", sizes.n_head},
                                 {"n_embd", sizes.n_head * sizes.head_dim}, {"n_positions", sizes.n_positions}, {"vocab_size", sizes.vocab_size},
                                 {"initializer_range", sizes.deviation}};
  ModelSource source;
  source.config = config.dump();
  source.seed = seed;
  return source;
}

}  // namespace

const std::vector<ModelSource>& probe_models() {
  static const std::vector<ModelSource> kModels = [] {
    std::vector<ModelSource> models;
    for (int twin = 0; twin < 2; ++twin)  // each shape twice, with other weights
      for (const Sizes& sizes : kSizes) models.push_back(source_of(sizes, 1000 + models.size()));
    return models;
  }();
  return kModels;
}

std::map<std::string, std::size_t> probe_choice(std::uint64_t seed, std::string_view models) {
  const std::size_t n = std::size(kSizes);
  const std::size_t main = mix64(seed) % n;
  std::map<std::string, std::size_t> choice{{"main", main}};
  if (models != "main") choice["other"] = mix64(seed + 2) % 2 == 0 ? n + main : (main + 1 + mix64(seed + 1) % (n - 1)) % n;
  return choice;
}

ModelFacts facts_of(const ModelSource& model) {
  const Config config = parse_config(nlohmann::json::parse(model.config), "probe model");
  return {config.vocab_size, config.n_positions, config.n_layer, config.n_head, config.head_dim()};
}

}  // namespace kvproof::harness
