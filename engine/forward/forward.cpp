#include "engine/forward/forward.hpp"

#include <algorithm>

#include "engine/forward/attention.hpp"
#include "engine/kernels/kernels.hpp"

// The last block computes queries, attention and MLP only for the columns whose logits are wanted; keys and values it computes for
// all, since they are stored.

namespace kvproof {
namespace {

/// Leaves of each row of the batch the columns [first, new_columns), packed.
void keep_columns(const StepPlan& plan, std::size_t first, std::size_t width, std::span<float> rows) noexcept {
  if (first == 0) return;
  const std::size_t kept = (plan.new_columns - first) * width;
  for (std::size_t row = 0; row < plan.batch; ++row)
    std::copy_n(rows.data() + (row * plan.new_columns + first) * width, kept, rows.data() + row * kept);
}

std::size_t first_wanted(const StepPlan& plan) noexcept {
  switch (plan.logits) {
    case LogitsWanted::last: return plan.new_columns - 1;
    case LogitsWanted::none: return plan.new_columns;
    case LogitsWanted::all: break;
  }
  return 0;
}

void activate(Activation activation, std::span<float> values) noexcept {
  switch (activation) {
    case Activation::gelu_tanh:
    case Activation::gelu_fast: return kernels::gelu_tanh(values);  // the same formula, written another way
    case Activation::gelu_erf: return kernels::gelu_erf(values);
    case Activation::relu: return kernels::relu(values);
    case Activation::silu: return kernels::silu(values);
    case Activation::tanh: return kernels::tanh(values);
  }
}

class Step {
 public:
  Step(const Model& model, const StepPlan& plan, KvCache* cache, Workspace& workspace) noexcept
      : model_(model), config_(model.config()), plan_(plan), cache_(cache), workspace_(workspace) {}

  void run(std::span<float> logits) noexcept {
    embed();
    for (std::size_t layer = 0; layer < config_.n_layer; ++layer)
      run_block(layer, layer + 1 == config_.n_layer ? first_wanted(plan_) : 0);
    if (rows_ == 0) return;
    const std::span<float> final = normed();
    kernels::layer_norm(hidden(), model_.ln_f.weight, model_.ln_f.bias, config_.layer_norm_epsilon, final);
    kernels::multiply_transposed({final.data(), rows_, config_.n_embd, config_.n_embd},
                                 {model_.lm_head.data(), config_.vocab_size, config_.n_embd, config_.n_embd}, 1.0F,
                                 {logits.data(), rows_, config_.vocab_size, config_.vocab_size});
  }

 private:
  [[nodiscard]] std::span<float> hidden() noexcept { return workspace_.hidden.first(rows_ * config_.n_embd); }
  [[nodiscard]] std::span<float> normed() noexcept { return workspace_.normed.first(rows_ * config_.n_embd); }

  void embed() noexcept {
    const std::size_t width = config_.n_embd;
    for (std::size_t i = 0; i < rows_; ++i)
      kernels::add(model_.wte.subspan(plan_.token[i] * width, width), model_.wpe.subspan(plan_.position[i] * width, width),
                   hidden().subspan(i * width, width));
  }

  void run_block(std::size_t layer, std::size_t first_query) noexcept {
    const Block& block = model_.blocks[layer];
    const std::span<float> qkv = workspace_.qkv.first(rows_ * 3 * config_.n_embd);
    kernels::layer_norm(hidden(), block.ln_1.weight, block.ln_1.bias, config_.layer_norm_epsilon, normed());
    kernels::linear(normed(), rows_, block.attn_qkv.weight, block.attn_qkv.bias, qkv);

    keep_columns(plan_, first_query, config_.n_embd, hidden());
    rows_ = plan_.batch * (plan_.new_columns - first_query);
    const std::span<float> attended = workspace_.attended.first(rows_ * config_.n_embd);
    attend(plan_, attention_input(layer, qkv, first_query), workspace_, attended);
    store(layer, qkv);
    if (rows_ == 0) return;
    kernels::linear(attended, rows_, block.attn_proj.weight, block.attn_proj.bias, hidden(), kernels::Into::add);
    run_mlp(block);
  }

  void run_mlp(const Block& block) noexcept {
    const std::span<float> inner = workspace_.inner.first(rows_ * config_.n_inner);
    kernels::layer_norm(hidden(), block.ln_2.weight, block.ln_2.bias, config_.layer_norm_epsilon, normed());
    kernels::linear(normed(), rows_, block.mlp_fc.weight, block.mlp_fc.bias, inner);
    activate(config_.activation_function, inner);
    kernels::linear(inner, rows_, block.mlp_proj.weight, block.mlp_proj.bias, hidden(), kernels::Into::add);
  }

  [[nodiscard]] AttentionInput attention_input(std::size_t layer, std::span<const float> qkv, std::size_t first_query) const noexcept {
    AttentionInput input;
    input.qkv = qkv.data();
    if (cache_ != nullptr) input.past = cache_->view(layer);
    input.shape = {config_.n_layer, config_.n_head, config_.head_dim()};
    input.scale = static_cast<float>(config_.attention_scale(layer));
    input.first_query = first_query;
    return input;
  }

  void store(std::size_t layer, std::span<const float> qkv) noexcept {
    if (plan_.writes.empty()) return;
    const std::size_t stride = 3 * config_.n_embd;
    const KvChunk chunk{qkv.data() + config_.n_embd, qkv.data() + 2 * config_.n_embd, plan_.new_columns * stride, stride};
    cache_->update(layer, chunk, plan_.batch, plan_.writes);
  }

  const Model& model_;
  const Config& config_;
  const StepPlan& plan_;
  KvCache* cache_;
  Workspace& workspace_;
  std::size_t rows_ = plan_.batch * plan_.new_columns;  // rows of hidden that are still computed
};

}  // namespace

std::size_t logits_size(const StepPlan& plan, const Config& config) noexcept {
  return plan.batch * (plan.new_columns - first_wanted(plan)) * config.vocab_size;
}

void run_step(const Model& model, const StepPlan& plan, KvCache* cache, Workspace& workspace, std::span<float> logits) noexcept {
  Step(model, plan, cache, workspace).run(logits);
  if (cache != nullptr && (!plan.writes.empty() || plan.new_length != plan.past_length)) cache->advance(plan.batch, plan.new_length);
}

}  // namespace kvproof
