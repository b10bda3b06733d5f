#include "harness/oracle/gpt2.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvproof::harness {
namespace {

template <typename Real>
using Matrix = std::vector<Real>;  // [n, width], row-major

template <typename Real>
Real activate(Activation activation, Real x) {
  const Real one = 1, half = Real(0.5);
  switch (activation) {
    case Activation::gelu_tanh:
      return half * x * (one + std::tanh(std::sqrt(Real(2) / std::acos(Real(-1))) * (x + Real(0.044715) * x * x * x)));
    case Activation::gelu_fast:
      return half * x * (one + std::tanh(Real(0.7978845608) * x * (one + Real(0.044715) * x * x)));
    case Activation::gelu_erf:
      return half * x * (one + std::erf(x / std::sqrt(Real(2))));
    case Activation::relu:
      return x > 0 ? x : Real(0);
    case Activation::silu:
      return x / (one + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
  }
  return x;
}

/// y = x W + b. Rows go in blocks so that a weight is read once for several of them; the order of each sum stays.
template <typename Real>
Matrix<Real> linear(const Matrix<Real>& x, const OracleModel::Linear& layer, std::size_t n) {
  constexpr std::size_t kBlock = 8;
  const std::size_t in = x.size() / n, out = layer.bias.size();
  Matrix<Real> y(n * out);
  for (std::size_t row = 0; row < n; ++row) std::copy(layer.bias.begin(), layer.bias.end(), y.begin() + static_cast<std::ptrdiff_t>(row * out));
  for (std::size_t start = 0; start < n; start += kBlock)
    for (std::size_t i = 0; i < in; ++i) {
      const float* weight = &layer.weight[i * out];
      for (std::size_t row = start; row < std::min(n, start + kBlock); ++row) {
        const Real factor = x[row * in + i];
        Real* sums = &y[row * out];
        for (std::size_t j = 0; j < out; ++j) sums[j] += factor * Real(weight[j]);
      }
    }
  return y;
}

template <typename Real>
Matrix<Real> layer_norm(const Matrix<Real>& x, const OracleModel::Norm& norm, double epsilon) {
  const std::size_t width = norm.weight.size();
  Matrix<Real> y(x.size());
  for (std::size_t start = 0; start < x.size(); start += width) {
    Real mean = 0, variance = 0;
    for (std::size_t i = 0; i < width; ++i) mean += x[start + i];
    mean /= Real(width);
    for (std::size_t i = 0; i < width; ++i) variance += (x[start + i] - mean) * (x[start + i] - mean);
    const Real scale = Real(1) / std::sqrt(variance / Real(width) + Real(epsilon));
    for (std::size_t i = 0; i < width; ++i) y[start + i] = (x[start + i] - mean) * scale * Real(norm.weight[i]) + Real(norm.bias[i]);
  }
  return y;
}

template <typename Real>
Matrix<Real> embed(const OracleModel& model, const RowHistory& history) {
  const std::size_t width = model.config.n_embd;
  Matrix<Real> x;
  x.reserve(history.columns.size() * width);
  for (const Column& column : history.columns)
    for (std::size_t i = 0; i < width; ++i)
      x.push_back(Real(model.wte[static_cast<std::size_t>(column.token) * width + i]) +
                  Real(model.wpe[static_cast<std::size_t>(column.position) * width + i]));
  return x;
}

double attention_scale(const Config& config, std::size_t layer) {
  double scale = 1;
  if (config.scale_attn_weights) scale /= std::sqrt(static_cast<double>(config.n_embd / config.n_head));
  if (config.scale_attn_by_inverse_layer_idx) scale /= static_cast<double>(layer + 1);
  return scale;
}

/// One head of one query: softmax(scale * q k) v over the columns it sees. `query` and `out` point at this head.
template <typename Real>
class Head {
 public:
  Head(const Matrix<Real>& keys, const Matrix<Real>& values, std::size_t width, std::size_t head_dim, Real scale)
      : keys_(keys), values_(values), width_(width), head_dim_(head_dim), scale_(scale) {}

  void attend(const Real* query, const std::vector<std::size_t>& seen, std::size_t offset, Real* out) {
    if (seen.empty()) return;
    weight_.clear();
    for (const std::size_t column : seen) {
      Real sum = 0;
      for (std::size_t i = 0; i < head_dim_; ++i) sum += query[i] * keys_[column * width_ + offset + i];
      weight_.push_back(sum * scale_);
    }
    const Real largest = *std::max_element(weight_.begin(), weight_.end());
    Real total = 0;
    for (Real& weight : weight_) total += weight = std::exp(weight - largest);
    for (std::size_t k = 0; k < seen.size(); ++k) {
      const Real share = weight_[k] / total;
      for (std::size_t i = 0; i < head_dim_; ++i) out[i] += share * values_[seen[k] * width_ + offset + i];
    }
  }

 private:
  const Matrix<Real>&keys_, &values_;
  std::size_t width_, head_dim_;
  Real scale_;
  std::vector<Real> weight_;
};

std::vector<std::size_t> seen_by(const RowHistory& history, std::size_t q) {
  std::vector<std::size_t> seen;
  for (std::size_t c = 0; c <= q; ++c)
    if (history.visible(q, c)) seen.push_back(c);
  return seen;
}

template <typename Real>
Matrix<Real> attention(const Config& config, const RowHistory& history, const Matrix<Real>& qkv, const Matrix<Real>& keys,
                       const Matrix<Real>& values, std::size_t layer) {
  const std::size_t n = history.columns.size(), width = config.n_embd, head_dim = width / config.n_head;
  Matrix<Real> out(n * width, Real(0));
  Head<Real> head(keys, values, width, head_dim, Real(attention_scale(config, layer)));
  for (std::size_t q = 0; q < n; ++q) {
    const auto seen = seen_by(history, q);
    for (std::size_t offset = 0; offset < width; offset += head_dim) head.attend(&qkv[q * 3 * width + offset], seen, offset, &out[q * width + offset]);
  }
  return out;
}

/// Columns [part * width, part * width + width) of each row of the joined projection.
template <typename Real>
Matrix<Real> third(const Matrix<Real>& qkv, std::size_t n, std::size_t width, std::size_t part) {
  Matrix<Real> out;
  out.reserve(n * width);
  for (std::size_t row = 0; row < n; ++row) {
    const auto start = qkv.begin() + static_cast<std::ptrdiff_t>((row * 3 + part) * width);
    out.insert(out.end(), start, start + static_cast<std::ptrdiff_t>(width));
  }
  return out;
}

template <typename Real>
void add(Matrix<Real>& x, const Matrix<Real>& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

/// Logits of one column. Tokens go in blocks so that the sums, each in index order, run side by side.
template <typename Real>
std::vector<Real> vocabulary_product(const OracleModel& model, const Real* hidden) {
  constexpr std::size_t kBlock = 8;
  const std::size_t width = model.config.n_embd, vocab_size = model.config.vocab_size;
  std::vector<Real> logits(vocab_size);
  for (std::size_t start = 0; start < vocab_size; start += kBlock) {
    const std::size_t count = std::min(kBlock, vocab_size - start);
    Real sums[kBlock] = {};
    for (std::size_t i = 0; i < width; ++i)
      for (std::size_t k = 0; k < count; ++k) sums[k] += hidden[i] * Real(model.lm_head[(start + k) * width + i]);
    std::copy_n(sums, count, logits.begin() + static_cast<std::ptrdiff_t>(start));
  }
  return logits;
}

}  // namespace

OracleModel::OracleModel(const Weights& weights) : config(weights.config()) {
  const auto linear_of = [&](const std::string& name) { return Linear{floats(weights, name + ".weight"), floats(weights, name + ".bias")}; };
  const auto norm_of = [&](const std::string& name) { return Norm{floats(weights, name + ".weight"), floats(weights, name + ".bias")}; };
  wte = floats(weights, "wte.weight");
  wpe = floats(weights, "wpe.weight");
  lm_head = floats(weights, "lm_head.weight");
  for (std::size_t layer = 0; layer < config.n_layer; ++layer) {
    const std::string h = fmt::format("h.{}.", layer);
    blocks.push_back({norm_of(h + "ln_1"), linear_of(h + "attn.c_attn"), linear_of(h + "attn.c_proj"), norm_of(h + "ln_2"),
                      linear_of(h + "mlp.c_fc"), linear_of(h + "mlp.c_proj")});
  }
  ln_f = norm_of("ln_f");
}

std::span<const float> OracleModel::floats(const Weights& weights, const std::string& name) {
  const TensorView& view = weights.tensor(name);
  if (view.dtype == Dtype::f32) return {reinterpret_cast<const float*>(view.bytes.data()), view.bytes.size() / sizeof(float)};
  return widened_.emplace_back(to_floats(view));
}

template <typename Real>
Pass<Real> full_pass(const OracleModel& model, const RowHistory& history, const Wanted& wanted) {
  const Config& config = model.config;
  const std::size_t n = history.columns.size(), width = config.n_embd;
  Pass<Real> pass;
  pass.logits.resize(n);
  if (n == 0) return pass;
  Matrix<Real> x = embed<Real>(model, history);
  for (std::size_t layer = 0; layer < config.n_layer; ++layer) {
    const OracleModel::Block& block = model.blocks[layer];
    const Matrix<Real> qkv = linear(layer_norm(x, block.ln_1, config.layer_norm_epsilon), block.attn_qkv, n);
    Matrix<Real> keys = third(qkv, n, width, 1), values = third(qkv, n, width, 2);
    add(x, linear(attention(config, history, qkv, keys, values, layer), block.attn_proj, n));
    Matrix<Real> inner = linear(layer_norm(x, block.ln_2, config.layer_norm_epsilon), block.mlp_fc, n);
    for (Real& value : inner) value = activate(config.activation_function, value);
    add(x, linear(inner, block.mlp_proj, n));
    if (!wanted.keys_values) continue;
    pass.keys.push_back(std::move(keys));
    pass.values.push_back(std::move(values));
  }
  x = layer_norm(x, model.ln_f, config.layer_norm_epsilon);
  for (std::size_t q = 0; q < n; ++q)
    if (wanted.logits[q] != 0) pass.logits[q] = vocabulary_product(model, &x[q * width]);
  return pass;
}

template Pass<double> full_pass<double>(const OracleModel&, const RowHistory&, const Wanted&);
template Pass<float> full_pass<float>(const OracleModel&, const RowHistory&, const Wanted&);

}  // namespace kvproof::harness
