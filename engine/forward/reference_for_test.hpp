#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "engine/cache/kv_cache.hpp"
#include "engine/forward/step_plan.hpp"
#include "engine/model/model.hpp"

namespace kvproof::test {

/// A model of 2 layers, 3 heads of 16, vocabulary 37, with these fields of the config changed.
std::shared_ptr<const Model> made_model(const nlohmann::json& changes, std::uint64_t seed);
const Model& small_model();
KvShape shape_of(const Model& model);

/// Everything a batch was ever fed: [B][columns], and per row which columns each column sees.
struct History {
  std::size_t batch = 0, columns = 0;
  std::vector<std::uint32_t> token, position;  // [batch, columns]
  std::vector<std::uint8_t> visible;           // [batch, columns, columns]

  /// Random tokens, positions 0, 1, …, causal visibility within `window` columns (0 = no window).
  static History causal(const Config& config, std::size_t batch, std::size_t columns, std::size_t window, std::uint64_t seed);
  /// Hides a column of a row from every query.
  void hide(std::size_t row, std::size_t column);
};

/// Logits [batch, columns, vocab] by plain loops in double, without cache and without kernels.
std::vector<double> reference_logits(const Model& model, const History& history);

/// The plan that feeds columns [first, first + count) of the history to `cache` (null: nothing is kept).
StepPlan plan_for(const History& history, std::size_t first, std::size_t count, const KvCache* cache);

/// Feeds the whole history in chunks of these lengths and returns all logits, [batch, columns, vocab].
std::vector<float> run_in_chunks(const Model& model, const History& history, const std::vector<std::size_t>& chunks, KvCache& cache);

/// The largest |got - want| / (1e-5 + 1e-4 |want|); infinity if anything is NaN or a size differs.
double worst_in_bounds(const std::vector<float>& got, const std::vector<double>& want);

}  // namespace kvproof::test
