#include "engine/session/cache_state.hpp"
#include "engine/session/check.hpp"
#include "engine/session/saved_cache.hpp"

namespace kvproof {

Cache::Cache(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Cache::Cache(Cache&&) noexcept = default;
Cache& Cache::operator=(Cache&&) noexcept = default;
Cache::~Cache() = default;

std::size_t Cache::length() const noexcept { return state_->kv->length(); }
std::size_t Cache::batch() const noexcept { return state_->kv->batch(); }
std::size_t Cache::gone() const noexcept { return state_->kv->gone(); }
std::size_t Cache::bytes_held() const noexcept { return state_->kv->bytes_held(); }
const CacheOptions& Cache::options() const noexcept { return state_->options; }
KvCache& Cache::storage() noexcept { return *state_->kv; }

Cache Cache::clone() const {
  return Cache(std::make_unique<State>(State{state_->owner, state_->options, state_->kv->clone(), state_->mask}));
}

void Cache::crop(std::int64_t length) {
  check_crop(*state_->kv, length);
  state_->kv->crop(static_cast<std::size_t>(length));
  state_->mask.crop(static_cast<std::size_t>(length));
}

void Cache::gather(std::span<const std::int64_t> rows) {
  check_gather(*state_->kv, rows);
  const std::vector<std::size_t> from(rows.begin(), rows.end());
  PastMask mask = state_->mask.gathered(from, columns_to_reserve(*state_->kv, length()));
  state_->kv->gather(from);  // the last step that can throw
  state_->mask = std::move(mask);
}

void Cache::reset() {
  state_->kv->reset();
  state_->mask.crop(0);
}

KvArrays Cache::read(std::int64_t layer) const {
  check_layer(state_->kv->shape().n_layer, layer);
  return state_->kv->read(static_cast<std::size_t>(layer));
}

void Cache::poison(bool on) noexcept { state_->kv->poison(on); }

std::vector<std::byte> Cache::save() const {
  SavedCache saved{state_->options, length(), gone(), state_->mask, {}};
  for (std::size_t layer = 0; layer < state_->kv->shape().n_layer; ++layer) saved.layers.push_back(state_->kv->read(layer));
  return encode_saved_cache(saved, *state_->owner);
}

}  // namespace kvproof
