#include <algorithm>
#include <span>
#include <utility>

#include "harness/defects/fault_groups.hpp"
#include "harness/defects/stored_heads.hpp"

namespace kvproof::harness {
namespace {

/// A plan seen query by query: `keys` are the S past columns read, oldest first, then the T new ones; `self` is the query's own.
struct Query {
  std::size_t row = 0, t = 0, self = 0;
  std::span<std::uint8_t> visible;
};

template <typename Visit>
void each_query(StepPlan& plan, const Visit& visit) {
  const std::size_t past = plan.read_slot.size(), keys = past + plan.new_columns;
  for (std::size_t row = 0, i = 0; row < plan.batch; ++row)
    for (std::size_t t = 0; t < plan.new_columns; ++t, ++i) visit(Query{row, t, past + t, std::span(plan.visible).subspan(i * keys, keys)});
}

/// A fault of the plan: `change` says whether it changed anything.
KnownFault plan_fault(std::string_view name, std::string_view does, std::vector<std::string_view> laws, bool (*change)(StepPlan&, const KvCache*)) {
  return {name, does, std::move(laws), [change](const Fired& fired) {
            Fault fault;
            fault.plan = [change, fired](StepPlan& plan, const KvCache* cache) {
              if (change(plan, cache)) ++*fired;
            };
            return fault;
          }};
}

bool set(std::uint8_t& flag, std::uint8_t value) {
  const bool changes = flag != value;
  flag = value;
  return changes;
}

/// Sets the visibility of every key of every query by a rule (query, key) -> bool.
template <typename Rule>
bool see(StepPlan& plan, const Rule& rule) {
  bool changed = false;
  each_query(plan, [&](const Query& query) {
    const std::vector<std::uint8_t> before(query.visible.begin(), query.visible.end());
    for (std::size_t key = 0; key < query.visible.size(); ++key) changed |= set(query.visible[key], rule(query, key, std::span(before)) ? 1 : 0);
  });
  return changed;
}

using Before = std::span<const std::uint8_t>;

bool sliding(const KvCache* cache) { return cache != nullptr && cache->kind() == CacheKind::sliding_window; }

bool causal_missing(StepPlan& plan, const KvCache*) {
  return plan.past_length == 0 && see(plan, [](const Query& q, std::size_t key, Before seen) { return seen[key] != 0 || (key == q.self + 1); });
}

bool causal_top_left(StepPlan& plan, const KvCache*) {
  if (plan.past_length == 0 || plan.new_columns < 2) return false;
  return see(plan, [](const Query& q, std::size_t key, Before seen) { return seen[key] != 0 && key <= q.t; });
}

bool pad_mask_lost(StepPlan& plan, const KvCache* cache) {
  return !sliding(cache) && see(plan, [](const Query& q, std::size_t key, Before) { return key <= q.self; });
}

bool pad_mask_prefill_only(StepPlan& plan, const KvCache* cache) { return plan.past_length != 0 && pad_mask_lost(plan, cache); }

/// Only pads on the left are hidden: from the first visible key on everything is seen.
bool mask_left_only(StepPlan& plan, const KvCache* cache) {
  if (sliding(cache)) return false;
  return see(plan, [](const Query& q, std::size_t key, Before seen) {
    const auto first = std::ranges::find(seen, std::uint8_t{1}) - seen.begin();
    return key <= q.self && static_cast<std::ptrdiff_t>(key) >= first;
  });
}

bool window_mask_lost(StepPlan& plan, const KvCache* cache) {
  const std::size_t window = sliding(cache) ? *cache->window_in_force() : 0;
  return window != 0 && see(plan, [&](const Query& q, std::size_t key, Before) { return key <= q.self && q.self - key < window; });
}

bool mask_of_first_row(StepPlan& plan, const KvCache*) {
  const std::size_t of_a_row = plan.new_columns * (plan.read_slot.size() + plan.new_columns);
  bool changed = false;
  for (std::size_t i = of_a_row; i < plan.visible.size(); ++i) changed |= set(plan.visible[i], plan.visible[i % of_a_row]);
  return changed;
}

bool mask_from_pad_id(StepPlan& plan, const KvCache*) {
  const std::size_t past = plan.read_slot.size();
  return see(plan, [&](const Query& q, std::size_t key, Before seen) {
    const bool pad = key >= past && key != q.self && plan.token[q.row * plan.new_columns + key - past] == 0;
    return seen[key] != 0 && !pad;
  });
}

bool positions_ignored(StepPlan& plan, const KvCache*) {
  bool changed = false;
  for (auto& position : plan.position) changed |= std::exchange(position, 0) != 0;
  return changed;
}

bool len_shared_rows(StepPlan& plan, const KvCache*) {
  bool changed = false;
  for (std::size_t i = plan.new_columns; plan.past_length != 0 && i < plan.position.size(); ++i) {
    const auto shared = plan.position[i % plan.new_columns];
    changed |= std::exchange(plan.position[i], shared) != shared;
  }
  return changed;
}

/// An unwritten slot holds what real engines' allocations hold, zeros: whatever lay in this memory before would fail now and then.
void zero_unwritten_slot(const KvCache& cache, std::size_t slot) {
  if (cache.poisoned()) return;
  const auto zero = [slot](const StoredHead& head) {
    std::ranges::fill(head.key(slot), 0.0F);
    std::ranges::fill(head.value(slot), 0.0F);
  };
  each_stored_head(zero, cache);
}

/// A static cache also attends over the slot behind its last column, which nothing was written to.
bool tail_visible(StepPlan& plan, const KvCache* cache) {
  if (cache == nullptr || cache->kind() == CacheKind::dynamic || cache->length() == 0 || plan.batch != cache->batch()) return false;
  const std::size_t slots = sliding(cache) ? *cache->window_in_force() : *cache->capacity();
  if (cache->length() >= slots) return false;
  const std::size_t past = plan.read_slot.size(), keys = past + plan.new_columns;
  std::vector<std::uint8_t> visible;
  for (std::size_t i = 0; i < plan.batch * plan.new_columns; ++i) {
    const auto row = plan.visible.begin() + static_cast<std::ptrdiff_t>(i * keys);
    visible.insert(visible.end(), row, row + static_cast<std::ptrdiff_t>(past));
    visible.push_back(1);
    visible.insert(visible.end(), row + static_cast<std::ptrdiff_t>(past), row + static_cast<std::ptrdiff_t>(keys));
  }
  plan.visible = std::move(visible);
  plan.read_slot.push_back(cache->slot(cache->length()));
  zero_unwritten_slot(*cache, plan.read_slot.back());
  return true;
}

bool window_minus_one(StepPlan& plan, const KvCache* cache) {
  const std::size_t window = sliding(cache) ? *cache->window_in_force() : 0;
  return window > 1 && see(plan, [&](const Query& q, std::size_t key, Before seen) { return seen[key] != 0 && key + window != q.self + 1; });
}

/// The last query of a chunk decides what is evicted before the first one attends.
bool window_early_evict(StepPlan& plan, const KvCache* cache) {
  const std::size_t window = sliding(cache) ? *cache->window_in_force() : 0, last = plan.read_slot.size() + plan.new_columns - 1;
  if (window == 0) return false;
  return see(plan, [&](const Query& q, std::size_t key, Before seen) { return seen[key] != 0 && (key + window > last || key == q.self); });
}

}  // namespace

std::vector<KnownFault> plan_faults() {
  return {
      plan_fault("causal-missing", "in a first chunk each query also sees the token after it", {"mask.causal"}, causal_missing),
      plan_fault("causal-top-left", "in a chunk behind a past, key j is seen by row i only if j <= i", {"mask.causal_append"}, causal_top_left),
      plan_fault("pad-mask-lost", "pads are never hidden", {"mask.hidden", "padding.left"}, pad_mask_lost),
      plan_fault("pad-mask-prefill-only", "pads are hidden at prefill only", {"mask.carried"}, pad_mask_prefill_only),
      plan_fault("mask-left-only", "only pads on the left are hidden", {"mask.holes", "padding.right"}, mask_left_only),
      plan_fault("window-mask-lost", "inside a window everything is seen, hidden or not", {"window.padding"}, window_mask_lost),
      plan_fault("mask-of-first-row", "all rows use the first row's mask", {"padding.neighbours"}, mask_of_first_row),
      plan_fault("mask-from-pad-id", "a key is hidden if its token is the pad id 0", {"padding.pad_id"}, mask_from_pad_id),
      plan_fault("positions-ignored", "every column has position 0", {"position.matters"}, positions_ignored),
      plan_fault("len-shared-rows", "behind a past all rows use the first row's positions", {"padding.ragged"}, len_shared_rows),
      plan_fault("tail-visible", "a static cache also attends over the slot behind its last column", {"cache.static", "cache.slots"}, tail_visible),
      plan_fault("window-minus-one", "a window of W sees W - 1 columns", {"window.band"}, window_minus_one),
      plan_fault("window-early-evict", "a chunk's last query decides the eviction before its first one attends", {"window.chunking"}, window_early_evict),
  };
}

}  // namespace kvproof::harness
