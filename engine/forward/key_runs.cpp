#include "engine/forward/key_runs.hpp"

namespace kvproof {
namespace {

/// How many queries of the block see this key.
std::size_t viewers(const StepPlan& plan, const QueryBlock& block, std::size_t key) noexcept {
  const std::size_t keys = plan.read_slot.size() + plan.new_columns;
  const std::uint8_t* seen = plan.visible.data() + (block.row * plan.new_columns + block.first) * keys + key;
  std::size_t count = 0;
  for (std::size_t query = 0; query < block.count; ++query) count += seen[query * keys];
  return count;
}

KeyRun run_of_one(const StepPlan& plan, std::size_t key, bool seen_by_all) noexcept {
  const std::size_t past = plan.read_slot.size();
  const bool in_cache = key < past;
  return {key, 1, in_cache ? plan.read_slot[key] : key - past, in_cache, seen_by_all};
}

bool continues(const KeyRun& run, const KeyRun& next) noexcept {
  return next.in_cache == run.in_cache && next.seen_by_all == run.seen_by_all && next.key == run.key + run.count &&
         next.place == run.place + run.count;
}

}  // namespace

void find_key_runs(const StepPlan& plan, const QueryBlock& block, std::vector<KeyRun>& runs) {
  runs.clear();
  const std::size_t keys = plan.read_slot.size() + plan.new_columns;
  for (std::size_t key = 0; key < keys; ++key) {
    const std::size_t count = viewers(plan, block, key);
    if (count == 0) continue;
    const KeyRun next = run_of_one(plan, key, count == block.count);
    if (!runs.empty() && continues(runs.back(), next))
      ++runs.back().count;
    else
      runs.push_back(next);
  }
}

}  // namespace kvproof
