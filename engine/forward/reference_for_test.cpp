#include "engine/forward/reference_for_test.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/base/seed.hpp"
#include "engine/forward/forward.hpp"
#include "engine/safetensors/test_files.hpp"
#include "engine/weights/portable_model.hpp"

namespace kvproof::test {
namespace {

using Row = std::vector<double>;

Row normed(const Row& x, const LayerNorm& norm, double epsilon) {
  const auto n = static_cast<double>(x.size());
  double mean = 0, variance = 0;
  for (const double value : x) mean += value / n;
  for (const double value : x) variance += (value - mean) * (value - mean) / n;
  Row y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    y[i] = (x[i] - mean) / std::sqrt(variance + epsilon) * static_cast<double>(norm.weight[i]) + static_cast<double>(norm.bias[i]);
  return y;
}

Row product(const Row& x, const Linear& linear) {
  Row y(linear.bias.begin(), linear.bias.end());
  for (std::size_t k = 0; k < x.size(); ++k)
    for (std::size_t j = 0; j < y.size(); ++j) y[j] += x[k] * static_cast<double>(linear.weight[k * y.size() + j]);
  return y;
}

double gelu(double x) {
  const double pi = std::acos(-1.0);
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / pi) * (x + 0.044715 * x * x * x)));
}

/// Where a head's numbers lie in a row, and what its scores are multiplied with.
struct Head {
  std::size_t start = 0, end = 0;
  double scale = 1;
};

/// One head of one query over the qkv rows of the columns it sees.
void attend_one(const std::vector<Row>& qkv, const std::uint8_t* sees, std::size_t query, const Head& head, Row& out) {
  const std::size_t width = out.size();
  std::vector<double> weight(qkv.size(), 0.0);
  double sum = 0;
  for (std::size_t c = 0; c < qkv.size(); ++c) {
    if (sees[c] == 0) continue;
    double score = 0;
    for (std::size_t i = head.start; i < head.end; ++i) score += qkv[query][i] * qkv[c][width + i];
    sum += weight[c] = std::exp(score * head.scale);
  }
  if (sum == 0) return;
  for (std::size_t c = 0; c < qkv.size(); ++c)
    if (sees[c] != 0)
      for (std::size_t i = head.start; i < head.end; ++i) out[i] += weight[c] / sum * qkv[c][2 * width + i];
}

void add_to(Row& x, const Row& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

void run_block(const Model& model, std::size_t layer, const std::uint8_t* visible, std::vector<Row>& hidden) {
  const Config& config = model.config();
  const Block& block = model.blocks[layer];
  const std::size_t columns = hidden.size();
  std::vector<Row> qkv;
  for (const Row& x : hidden) qkv.push_back(product(normed(x, block.ln_1, config.layer_norm_epsilon), block.attn_qkv));
  for (std::size_t q = 0; q < columns; ++q) {
    Row attended(config.n_embd, 0.0);
    for (std::size_t start = 0; start < config.n_embd; start += config.head_dim())
      attend_one(qkv, visible + q * columns, q, {start, start + config.head_dim(), config.attention_scale(layer)}, attended);
    add_to(hidden[q], product(attended, block.attn_proj));
    Row inner = product(normed(hidden[q], block.ln_2, config.layer_norm_epsilon), block.mlp_fc);
    for (double& value : inner) value = gelu(value);
    add_to(hidden[q], product(inner, block.mlp_proj));
  }
}

std::vector<Row> embedded(const Model& model, const History& history, std::size_t row) {
  const std::size_t width = model.config().n_embd;
  std::vector<Row> hidden(history.columns, Row(width));
  for (std::size_t c = 0; c < history.columns; ++c)
    for (std::size_t i = 0; i < width; ++i)
      hidden[c][i] = static_cast<double>(model.wte[history.token[row * history.columns + c] * width + i]) +
                     static_cast<double>(model.wpe[history.position[row * history.columns + c] * width + i]);
  return hidden;
}

}  // namespace

std::shared_ptr<const Model> made_model(const nlohmann::json& changes, std::uint64_t seed) {
  nlohmann::json config{{"model_type", "gpt2"}, {"vocab_size", 37},  {"n_positions", 160}, {"n_embd", 48},
                        {"n_layer", 2},         {"n_head", 3},       {"initializer_range", 0.15}};
  config.update(changes);
  const test::ScratchFolder folder("forward");
  write_portable_model(config, seed, folder.path());
  return Model::open(folder.path());
}

const Model& small_model() {
  static const auto model = made_model(nlohmann::json::object(), 1);
  return *model;
}

KvShape shape_of(const Model& model) { return {model.config().n_layer, model.config().n_head, model.config().head_dim()}; }

History History::causal(const Config& config, std::size_t batch, std::size_t columns, std::size_t window, std::uint64_t seed) {
  Random random(seed);
  History history{batch, columns, {}, {}, std::vector<std::uint8_t>(batch * columns * columns, 0)};
  for (std::size_t i = 0; i < batch * columns; ++i) {
    history.token.push_back(static_cast<std::uint32_t>(random.below(config.vocab_size)));
    history.position.push_back(static_cast<std::uint32_t>(i % columns));
    const std::size_t q = i % columns;
    for (std::size_t c = 0; c <= q; ++c) history.visible[i * columns + c] = window == 0 || q - c < window;
  }
  return history;
}

void History::hide(std::size_t row, std::size_t column) {
  for (std::size_t q = 0; q < columns; ++q) visible[(row * columns + q) * columns + column] = 0;
}

std::vector<double> reference_logits(const Model& model, const History& history) {
  const Config& config = model.config();
  std::vector<double> logits;
  for (std::size_t row = 0; row < history.batch; ++row) {
    std::vector<Row> hidden = embedded(model, history, row);
    for (std::size_t layer = 0; layer < config.n_layer; ++layer)
      run_block(model, layer, history.visible.data() + row * history.columns * history.columns, hidden);
    for (const Row& x : hidden) {
      const Row final = normed(x, model.ln_f, config.layer_norm_epsilon);
      for (std::size_t id = 0; id < config.vocab_size; ++id) {
        double logit = 0;
        for (std::size_t i = 0; i < config.n_embd; ++i) logit += final[i] * static_cast<double>(model.lm_head[id * config.n_embd + i]);
        logits.push_back(logit);
      }
    }
  }
  return logits;
}

StepPlan plan_for(const History& history, std::size_t first, std::size_t count, const KvCache* cache) {
  StepPlan plan;
  plan.batch = history.batch;
  plan.new_columns = count;
  plan.past_length = first;
  plan.new_length = cache == nullptr ? first : first + count;
  const std::size_t oldest = cache == nullptr ? first : cache->gone();
  for (std::size_t c = oldest; c < first; ++c) plan.read_slot.push_back(cache->slot(c));
  for (std::size_t row = 0; row < history.batch; ++row)
    for (std::size_t q = first; q < first + count; ++q) {
      const std::size_t at = row * history.columns + q;
      plan.token.push_back(history.token[at]);
      plan.position.push_back(history.position[at]);
      for (std::size_t c = oldest; c < first + count; ++c) plan.visible.push_back(history.visible[at * history.columns + c]);
    }
  if (cache == nullptr) return plan;
  const std::size_t kept = std::min(count, cache->window_in_force().value_or(count));
  for (std::size_t t = count - kept; t < count; ++t) plan.writes.push_back({t, cache->slot(first + t)});
  return plan;
}

std::vector<float> run_in_chunks(const Model& model, const History& history, const std::vector<std::size_t>& chunks, KvCache& cache) {
  const std::size_t vocab = model.config().vocab_size;
  std::vector<float> all(history.batch * history.columns * vocab);
  Workspace workspace;
  std::size_t first = 0;
  for (const std::size_t count : chunks) {
    const StepPlan plan = plan_for(history, first, count, &cache);
    std::vector<float> logits(logits_size(plan, model.config()));
    cache.reserve(history.batch, count);
    workspace.reserve(model.config(), history.batch * count, plan.read_slot.size() + count);
    run_step(model, plan, &cache, workspace, logits);
    for (std::size_t row = 0; row < history.batch; ++row)
      std::copy_n(logits.data() + row * count * vocab, count * vocab, all.data() + (row * history.columns + first) * vocab);
    first += count;
  }
  return all;
}

double worst_in_bounds(const std::vector<float>& got, const std::vector<double>& want) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (got.size() != want.size()) return kInfinity;
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(static_cast<double>(got[i]) - want[i]) / (1e-5 + 1e-4 * std::abs(want[i]));
    if (!(error <= worst)) worst = std::isnan(error) ? kInfinity : error;
  }
  return worst;
}

}  // namespace kvproof::test
