#include "engine/session/session.hpp"

#include <fmt/format.h>

#include <bit>
#include <new>

#include "engine/session/cache_state.hpp"
#include "engine/session/check.hpp"
#include "engine/session/planner.hpp"
#include "engine/session/saved_cache.hpp"

// The order inside a call is what its promise rests on: every check, then everything that allocates, then the step, which
// cannot fail. Until then nothing has changed that a caller can see.

namespace kvproof {
namespace {

HeldColumns held_columns(const KvCache& kv, const PastMask& mask) {
  return {kv.length(), &mask, kv.kind() == CacheKind::fixed ? kv.capacity() : std::nullopt};
}

// In powers of two: a cache that grows column by column then allocates rarely.
void reserve_workspace(const Config& config, std::size_t rows, std::size_t keys, Workspace& workspace) {
  workspace.reserve(config, rows, std::bit_ceil(keys));
}

// Room for this step and, in a static cache, for every later step of one column.
void reserve_step(const Config& config, KvCache* kv, PastMask* mask, Scratch& scratch) {
  StepPlan& plan = scratch.plan;
  const std::size_t rows = plan.batch * plan.new_columns;
  reserve_workspace(config, rows, plan.read_slot.size() + plan.new_columns, scratch.workspace);
  if (kv == nullptr || plan.writes.empty()) return;
  kv->reserve(plan.batch, plan.new_columns);
  const std::size_t columns = columns_to_reserve(*kv, plan.new_length);
  mask->reserve(plan.batch, columns);
  if (kv->kind() != CacheKind::fixed) return;
  reserve_plan(plan, plan.batch, columns);
  reserve_workspace(config, plan.batch, columns, scratch.workspace);
}

void resize_logits(const StepPlan& plan, std::size_t vocab_size, Logits& logits) {
  const std::size_t columns = logits_columns(plan);
  logits.values.resize(plan.batch * columns * vocab_size);
  logits.batch = plan.batch;
  logits.columns = columns;
  logits.vocab_size = vocab_size;
}

// A static cache takes its whole capacity at once, whatever the container's size: that number is checked by asking for it.
void restore(const SavedCache& saved, KvCache& kv) {
  const auto refuse = [&](std::string_view why) {
    throw DataError({"saved cache", fmt::format("capacity {} cannot be allocated: {}", saved.options.capacity.value_or(0), why), {}, {}});
  };
  try {
    kv.restore(saved.layers, saved.length, saved.gone);
  } catch (const std::bad_alloc&) {
    refuse("out of memory");
  } catch (const Error& error) {
    refuse(error.what());
  }
}

}  // namespace

Session::Session(std::shared_ptr<const Model> model, PlanHook plan_hook)
    : owner_(std::make_shared<const ModelIdentity>(std::move(model))), plan_hook_(std::move(plan_hook)) {}

Session Session::open(const std::filesystem::path& folder) { return Session(Model::open(folder)); }

const Model& Session::model() const noexcept { return owner_->model(); }

Cache Session::make_cache(const CacheOptions& options) const {
  check_cache_options(options);
  const Config& config = model().config();
  auto kv = make_kv_cache({config.n_layer, config.n_head, config.head_dim()}, options);
  return Cache(std::make_unique<Cache::State>(Cache::State{owner_, options, std::move(kv), {}}));
}

Cache Session::load(std::vector<std::byte> bytes) const {
  SavedCache saved = decode_saved_cache(std::move(bytes), *owner_);
  Cache cache = make_cache(saved.options);
  if (saved.length > 0) restore(saved, *cache.state_->kv);
  cache.state_->mask = std::move(saved.mask);
  return cache;
}

void Session::check(const Cache* cache, const ForwardInput& input) const {
  if (cache != nullptr) check_model(&cache->state_->owner->model() == &model());
  check_forward(model().config(), cache != nullptr ? held_columns(*cache->state_->kv, cache->state_->mask) : HeldColumns{}, input);
}

Logits Session::forward(Cache* cache, const ForwardInput& input) const {
  Logits logits;
  forward_into(cache, input, logits);
  return logits;
}

void Session::run_full_pass(const ForwardInput& input, Logits& logits) const {
  Scratch scratch;
  plan_step(input, nullptr, scratch.plan);
  if (plan_hook_) plan_hook_(scratch.plan, nullptr);
  reserve_step(model().config(), nullptr, nullptr, scratch);
  resize_logits(scratch.plan, model().config().vocab_size, logits);
  run_step(model(), scratch.plan, nullptr, scratch.workspace, logits.values);
}

void Session::forward_into(Cache* cache, const ForwardInput& input, Logits& logits) const {
  check(cache, input);
  if (cache == nullptr) return run_full_pass(input, logits);
  Cache::State& state = *cache->state_;
  StepPlan& plan = state.scratch.plan;
  plan_step(input, state.kv.get(), plan);
  if (plan_hook_) plan_hook_(plan, state.kv.get());
  reserve_step(model().config(), state.kv.get(), &state.mask, state.scratch);
  resize_logits(plan, model().config().vocab_size, logits);
  run_step(model(), plan, state.kv.get(), state.scratch.workspace, logits.values);
  if (!plan.writes.empty()) state.mask.take(input.attention_mask ? &*input.attention_mask : nullptr, plan.batch, plan.new_length);
}

StepPlan Session::plan(const Cache* cache, const ForwardInput& input) const {
  check(cache, input);
  StepPlan plan;
  plan_step(input, cache != nullptr ? cache->state_->kv.get() : nullptr, plan);
  return plan;
}

}  // namespace kvproof
