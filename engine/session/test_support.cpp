#include "engine/session/test_support.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/base/seed.hpp"
#include "engine/safetensors/reader.hpp"
#include "engine/safetensors/test_files.hpp"
#include "engine/safetensors/writer.hpp"
#include "engine/weights/portable_model.hpp"

namespace kvproof::testing {

namespace {

// Writes a portable model to a folder of its own, lets `change` alter it, opens it and removes the folder: the map keeps the contents.
template <class Change>
std::shared_ptr<const Model> open_portable(std::uint64_t seed, const ModelSizes& sizes, Change change) {
  const nlohmann::json config{{"model_type", "gpt2"},         {"n_layer", sizes.n_layer},         {"n_head", sizes.n_head},
                              {"n_embd", sizes.n_embd},       {"n_positions", sizes.n_positions}, {"vocab_size", sizes.vocab_size},
                              {"initializer_range", 0.12}};
  const test::ScratchFolder folder("session");
  write_portable_model(config, seed, folder.path());
  change(folder / "model.safetensors");
  return Model::open(folder.path());
}

void zero_token_embeddings(const std::filesystem::path& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  std::vector<TensorToWrite> tensors;
  std::vector<std::byte> zeros;
  for (const TensorView& tensor : file.tensors()) {
    const bool embeddings = tensor.name.ends_with("wte.weight");
    if (embeddings) zeros.resize(tensor.bytes.size());
    tensors.push_back({tensor.name, tensor.dtype, tensor.shape, embeddings ? std::span<const std::byte>(zeros) : tensor.bytes});
  }
  write_safetensors(path, file.metadata(), tensors);
}

}  // namespace

std::shared_ptr<const Model> make_model(std::uint64_t seed, const ModelSizes& sizes) { return open_portable(seed, sizes, [](const auto&) {}); }

std::shared_ptr<const Model> make_flat_model() { return open_portable(1, {}, zero_token_embeddings); }

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
