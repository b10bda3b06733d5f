#include "engine/session/test_support.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/base/seed.hpp"
#include "engine/weights/portable_model.hpp"

namespace kvproof::testing {

std::shared_ptr<const Model> make_model(std::uint64_t seed, const ModelSizes& sizes) {
  const nlohmann::json config{{"model_type", "gpt2"},         {"n_layer", sizes.n_layer},         {"n_head", sizes.n_head},
                              {"n_embd", sizes.n_embd},       {"n_positions", sizes.n_positions}, {"vocab_size", sizes.vocab_size},
                              {"initializer_range", 0.12}};
  std::string name = (std::filesystem::temp_directory_path() / "kvproof-session-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw Error({name, "cannot make a folder", {}, {}});
  write_portable_model(config, seed, name);
  auto model = Model::open(name);
  std::filesystem::remove_all(name);  // the map keeps the file's contents
  return model;
}

const Session& session() {
  static const Session shared(make_model(11));
  return shared;
}

CacheOptions fixed(std::int64_t capacity) { return {CacheKind::fixed, capacity, std::nullopt}; }
CacheOptions sliding(std::int64_t capacity, std::int64_t window) { return {CacheKind::sliding_window, capacity, window}; }
std::vector<CacheOptions> all_kinds() { return {CacheOptions{}, fixed(24), sliding(24, 24)}; }

Rows some_tokens(std::size_t rows, std::size_t columns, std::uint64_t seed) {
  Random random(seed);
  Rows tokens(rows, std::vector<std::int64_t>(columns));
  for (auto& row : tokens)
    for (auto& token : row) token = static_cast<std::int64_t>(random.below(session().model().config().vocab_size));
  return tokens;
}

ForwardInput call(Rows input_ids) {
  ForwardInput input;
  input.input_ids = std::move(input_ids);
  return input;
}

ForwardInput call(Rows input_ids, Rows mask) {
  ForwardInput input = call(std::move(input_ids));
  input.attention_mask = std::move(mask);
  return input;
}

ForwardInput call(Rows input_ids, Rows mask, Rows positions) {
  ForwardInput input = call(std::move(input_ids), std::move(mask));
  input.position_ids = std::move(positions);
  return input;
}

Rows columns_of(const Rows& rows, std::size_t begin, std::size_t end) {
  Rows part;
  for (const auto& row : rows)
    part.emplace_back(row.begin() + static_cast<std::ptrdiff_t>(begin), row.begin() + static_cast<std::ptrdiff_t>(end));
  return part;
}

std::span<const float> row_of(const Logits& logits, std::size_t batch_row, std::size_t column) {
  return std::span(logits.values).subspan((batch_row * logits.columns + column) * logits.vocab_size, logits.vocab_size);
}

double distance(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double units = std::abs(double{a[i]} - double{b[i]}) / (1e-5 + 1e-4 * std::abs(double{b[i]}));
    if (!(units <= worst)) worst = std::isnan(units) ? std::numeric_limits<double>::infinity() : units;
  }
  return worst;
}

}  // namespace kvproof::testing
