#include "harness/oracle/oracle.hpp"

namespace kvproof::harness {

Oracle::Oracle(Weights weights) : weights_(std::move(weights)), model_(weights_) {}

std::shared_ptr<const Oracle> Oracle::open(const std::filesystem::path& folder) {
  return std::shared_ptr<const Oracle>(new Oracle(Weights::open(folder)));
}

ModelFacts Oracle::facts() const noexcept {
  const Config& config = weights_.config();
  return {config.vocab_size, config.n_positions, config.n_layer, config.n_head, config.head_dim()};
}

std::map<std::string, ModelFacts> facts_of(const Oracles& oracles) {
  std::map<std::string, ModelFacts> facts;
  for (const auto& [name, oracle] : oracles) facts[name] = oracle->facts();
  return facts;
}

}  // namespace kvproof::harness
