#include "engine/forward/attention.hpp"

#include <algorithm>
#include <limits>

#include "engine/kernels/kernels.hpp"

// Queries are taken in blocks of one row. Keys that the whole block sees go through matrix products; of the others (the triangle of
// the chunk, the edge of a window) all scores are computed too, but those a query must not see are overwritten before they are
// used, and the values are added key by key. A weight of 0 is no protection: 0 * NaN is NaN.

namespace kvproof {
namespace {

/// One head of one block of queries.
class HeadOfBlock {
 public:
  HeadOfBlock(const StepPlan& plan, const AttentionInput& input, const QueryBlock& block, std::span<const KeyRun> runs,
              std::span<float> scores) noexcept
      : plan_(plan), input_(input), block_(block), runs_(runs), scores_(scores.data()) {
    for (const KeyRun& run : runs) columns_ += run.count;
    stride_ = score_stride(columns_);
  }

  void attend(std::size_t head, float* out, std::size_t out_stride) noexcept {
    head_ = head;
    score_all();
    for (std::size_t query = 0; query < block_.count; ++query) kernels::softmax({scores_ + query * stride_, columns_});
    add_values(out, out_stride);
  }

 private:
  [[nodiscard]] std::size_t embedding() const noexcept { return input_.shape.n_head * input_.shape.head_dim; }

  /// Queries [count, head_dim] of this head.
  [[nodiscard]] kernels::ConstMatrix queries() const noexcept {
    const std::size_t first = block_.row * plan_.new_columns + block_.first;
    const std::size_t stride = 3 * embedding();
    return {input_.qkv + first * stride + head_ * input_.shape.head_dim, block_.count, input_.shape.head_dim, stride};
  }

  /// Keys or values [run.count, head_dim]: `part` 1 = keys, 2 = values.
  [[nodiscard]] kernels::ConstMatrix stored(const KeyRun& run, std::size_t part) const noexcept {
    const std::size_t head_dim = input_.shape.head_dim;
    if (run.in_cache) {
      const float* base = part == 1 ? input_.past.keys : input_.past.values;
      const float* start = base + block_.row * input_.past.row_stride + head_ * input_.past.head_stride;
      return {start + run.place * head_dim, run.count, head_dim, head_dim};
    }
    const std::size_t stride = 3 * embedding();
    const std::size_t column = block_.row * plan_.new_columns + run.place;
    return {input_.qkv + column * stride + part * embedding() + head_ * head_dim, run.count, head_dim, stride};
  }

  [[nodiscard]] const std::uint8_t* seen(std::size_t query, const KeyRun& run) const noexcept {
    const std::size_t keys = plan_.read_slot.size() + plan_.new_columns;
    return plan_.visible.data() + (block_.row * plan_.new_columns + block_.first + query) * keys + run.key;
  }

  void score_all() noexcept {
    std::size_t column = 0;
    for (const KeyRun& run : runs_) {
      const kernels::Matrix to{scores_ + column, block_.count, run.count, stride_};
      kernels::multiply_transposed(queries(), stored(run, 1), input_.scale, to);
      if (!run.seen_by_all) forget_unseen(run, to);
      column += run.count;
    }
  }

  void forget_unseen(const KeyRun& run, const kernels::Matrix& scores) const noexcept {
    for (std::size_t query = 0; query < scores.rows; ++query)
      for (std::size_t i = 0; i < run.count; ++i)
        if (seen(query, run)[i] == 0) scores.data[query * scores.stride + i] = -std::numeric_limits<float>::infinity();
  }

  void add_values(float* out, std::size_t out_stride) const noexcept {
    const kernels::Matrix to{out, block_.count, input_.shape.head_dim, out_stride};
    for (std::size_t query = 0; query < to.rows; ++query) std::fill_n(to.data + query * to.stride, to.columns, 0.0F);
    std::size_t column = 0;
    for (const KeyRun& run : runs_) {
      const kernels::ConstMatrix weights{scores_ + column, block_.count, run.count, stride_};
      if (run.seen_by_all)
        kernels::multiply(weights, stored(run, 2), to, kernels::Into::add);
      else
        add_seen_values(run, weights, to);
      column += run.count;
    }
  }

  void add_seen_values(const KeyRun& run, const kernels::ConstMatrix& weights, const kernels::Matrix& to) const noexcept {
    const kernels::ConstMatrix values = stored(run, 2);
    for (std::size_t query = 0; query < to.rows; ++query)
      for (std::size_t i = 0; i < run.count; ++i)
        if (seen(query, run)[i] != 0)
          kernels::add_scaled(weights.data[query * weights.stride + i], {values.data + i * values.stride, values.columns},
                              {to.data + query * to.stride, to.columns});
  }

  const StepPlan& plan_;
  const AttentionInput& input_;
  const QueryBlock& block_;
  std::span<const KeyRun> runs_;
  float* scores_;            // [block.count, stride_]
  std::size_t columns_ = 0;  // keys of all runs
  std::size_t stride_ = 0;
  std::size_t head_ = 0;
};

}  // namespace

void attend(const StepPlan& plan, const AttentionInput& input, Workspace& workspace, std::span<float> attended) noexcept {
  const std::size_t queries = plan.new_columns - input.first_query;
  const std::size_t embedding = input.shape.n_head * input.shape.head_dim;
  const std::size_t keys = plan.read_slot.size() + plan.new_columns;
  for (std::size_t row = 0; row < plan.batch; ++row)
    for (std::size_t first = input.first_query; first < plan.new_columns; first += kQueryBlock) {
      const QueryBlock block{row, first, std::min(kQueryBlock, plan.new_columns - first)};
      find_key_runs(plan, block, workspace.runs);
      HeadOfBlock heads(plan, input, block, workspace.runs, workspace.scores.first(block.count * score_stride(keys)));
      float* out = attended.data() + (row * queries + first - input.first_query) * embedding;
      for (std::size_t head = 0; head < input.shape.n_head; ++head)
        heads.attend(head, out + head * input.shape.head_dim, embedding);
    }
}

}  // namespace kvproof
