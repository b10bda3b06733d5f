#include "engine/session/planner.hpp"

#include <algorithm>
#include <limits>

namespace kvproof {
namespace {

constexpr std::size_t kNoWindow = std::numeric_limits<std::size_t>::max();

// The past columns that the call reads: [first, past). The new query at column `past` sees furthest back, to past - W + 1; none of
// those is lost, for a step keeps the last W columns and check_crop lets no crop end where one is missing.
std::size_t first_past_column(const KvCache& cache, std::size_t window) {
  return cache.length() >= window ? cache.length() + 1 - window : 0;
}

void plan_tokens(const ForwardInput& input, StepPlan& plan) {
  plan.token.resize(plan.batch * plan.new_columns);
  plan.position.resize(plan.batch * plan.new_columns);
  for (std::size_t b = 0, i = 0; b < plan.batch; ++b)
    for (std::size_t t = 0; t < plan.new_columns; ++t, ++i) {
      plan.token[i] = static_cast<std::uint32_t>(input.input_ids[b][t]);
      const auto position = input.position_ids ? static_cast<std::size_t>((*input.position_ids)[b][t]) : plan.past_length + t;
      plan.position[i] = static_cast<std::uint32_t>(position);
    }
}

void plan_reads(const KvCache* cache, std::size_t first, StepPlan& plan) {
  plan.read_slot.clear();
  for (std::size_t column = first; column < plan.past_length; ++column) plan.read_slot.push_back(cache->slot(column));
}

// One query's keys: columns first .. past+T-1; `mask` is the call's mask row, null = all ones.
void plan_query(const std::vector<std::int64_t>* mask, std::size_t first, std::size_t query, std::size_t window,
                std::span<std::uint8_t> visible) {
  for (std::size_t k = 0; k < visible.size(); ++k) {
    const std::size_t column = first + k;
    visible[k] = column <= query && query - column < window && (mask == nullptr || (*mask)[column] == 1);
  }
}

void plan_visible(const ForwardInput& input, std::size_t first, std::size_t window, StepPlan& plan) {
  const std::size_t keys = plan.read_slot.size() + plan.new_columns;
  plan.visible.resize(plan.batch * plan.new_columns * keys);
  for (std::size_t b = 0, i = 0; b < plan.batch; ++b)
    for (std::size_t t = 0; t < plan.new_columns; ++t, ++i)
      plan_query(input.attention_mask ? &(*input.attention_mask)[b] : nullptr, first, plan.past_length + t, window,
                 std::span(plan.visible).subspan(i * keys, keys));
}

// Under a window only the last W new columns can be seen later; each slot is written at most once.
void plan_writes(const KvCache* cache, bool stores, std::size_t window, StepPlan& plan) {
  plan.writes.clear();
  plan.new_length = plan.past_length;
  if (!stores) return;
  plan.new_length += plan.new_columns;
  for (std::size_t t = plan.new_columns - std::min(plan.new_columns, window); t < plan.new_columns; ++t)
    plan.writes.push_back({t, cache->slot(plan.past_length + t)});
}

}  // namespace

void plan_step(const ForwardInput& input, const KvCache* cache, StepPlan& plan) {
  plan.batch = input.input_ids.size();
  plan.new_columns = input.input_ids.front().size();
  plan.past_length = cache != nullptr ? cache->length() : 0;
  plan.logits = input.logits;
  const std::size_t window = cache != nullptr ? cache->window_in_force().value_or(kNoWindow) : kNoWindow;
  const std::size_t first = cache != nullptr ? first_past_column(*cache, window) : 0;
  plan_tokens(input, plan);
  plan_reads(cache, first, plan);
  plan_visible(input, first, window, plan);
  plan_writes(cache, cache != nullptr && input.use_cache, window, plan);
}

void reserve_plan(StepPlan& plan, std::size_t batch, std::size_t columns) {
  plan.token.reserve(batch);
  plan.position.reserve(batch);
  plan.read_slot.reserve(columns);
  plan.visible.reserve(batch * columns);
  plan.writes.reserve(1);
}

std::size_t logits_columns(const StepPlan& plan) noexcept {
  switch (plan.logits) {
    case LogitsWanted::all:
      return plan.new_columns;
    case LogitsWanted::last:
      return 1;
    case LogitsWanted::none:
      break;
  }
  return 0;
}

}  // namespace kvproof
