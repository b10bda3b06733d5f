#include "engine/cache/kv_cache.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <new>
#include <utility>

#include "engine/base/checked_size.hpp"
#include "engine/base/error.hpp"

// A block of a cache is the slots of one row and head: [slots, head_dim]. Blocks lie one behind the other in the order layer, K or
// V, row, head. Columns held are gone_ .. length_-1; slot() puts them in different slots, and the columns length_ .. gone_+slots_-1
// would take exactly the others: those are the slots that hold nothing.

namespace kvproof {
namespace {

constexpr std::align_val_t kAlignment{64};

std::size_t machine_memory() noexcept {
  static const long pages = sysconf(_SC_PHYS_PAGES);
  static const long page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return std::numeric_limits<std::size_t>::max();
  return static_cast<std::size_t>(pages) * static_cast<std::size_t>(page);
}

/// Floats of an allocation that the machine could hold. Lazily backed memory would make a wild capacity look like a success.
std::size_t checked_floats(const KvShape& shape, std::size_t batch, std::size_t slots) {
  const std::array extents{std::size_t{2}, shape.n_layer, batch, shape.n_head, slots, shape.head_dim};
  const auto floats = checked_product(extents);
  const auto bytes = floats ? checked_product(*floats, sizeof(float)) : std::nullopt;
  if (!bytes || *bytes > machine_memory())
    throw Error({"cache", fmt::format("{} rows of {} slots of {} layers, {} heads, {} values do not fit the memory", batch, slots,
                                      shape.n_layer, shape.n_head, shape.head_dim),
                 fmt::format("at most {} bytes", machine_memory()), ""});
  return *floats;
}

}  // namespace

void KvCache::FreeAligned::operator()(float* data) const noexcept { ::operator delete(data, kAlignment); }

KvCache::Storage KvCache::allocate(std::size_t batch, std::size_t slots) const {
  Storage made;
  const std::size_t floats = checked_floats(shape_, batch, slots);
  made.data.reset(static_cast<float*>(::operator new(floats * sizeof(float), kAlignment)));
  made.batch = batch;
  made.slots = slots;
  if (poisoned_) std::fill_n(made.data.get(), floats, std::numeric_limits<float>::quiet_NaN());
  return made;
}

std::size_t KvCache::floats(const Storage& storage) const noexcept {
  return 2 * shape_.n_layer * storage.batch * shape_.n_head * storage.slots * shape_.head_dim;
}

/// Row i of `to` becomes row rows(i) of `from`, in every layer; only slots that can hold a column are copied.
template <class RowOf>
void KvCache::copy_rows(const Storage& from, Storage& to, RowOf row_of) const noexcept {
  const std::size_t from_block = from.slots * shape_.head_dim;
  const std::size_t to_block = to.slots * shape_.head_dim;
  const std::size_t used = std::min(length_, from.slots) * shape_.head_dim;
  for (std::size_t part = 0; part < 2 * shape_.n_layer; ++part)
    for (std::size_t row = 0; row < to.batch; ++row)
      for (std::size_t head = 0; head < shape_.n_head; ++head) {
        const std::size_t from_index = (part * from.batch + row_of(row)) * shape_.n_head + head;
        const std::size_t to_index = (part * to.batch + row) * shape_.n_head + head;
        std::copy_n(from.data.get() + from_index * from_block, used, to.data.get() + to_index * to_block);
      }
}

KvCache::KvCache(const KvCache& other)
    : shape_(other.shape_), batch_(other.batch_), length_(other.length_), gone_(other.gone_), poisoned_(other.poisoned_) {
  if (length_ == 0) return;
  storage_ = allocate(other.storage_.batch, other.storage_.slots);
  copy_rows(other.storage_, storage_, std::identity{});
}

std::size_t KvCache::bytes_held() const noexcept { return floats(storage_) * sizeof(float); }

KvView KvCache::view(std::size_t layer) const noexcept {
  KvView found;
  found.head_stride = storage_.slots * shape_.head_dim;
  found.row_stride = shape_.n_head * found.head_stride;
  found.keys = storage_.data.get() + 2 * layer * storage_.batch * found.row_stride;
  found.values = found.keys + storage_.batch * found.row_stride;
  return found;
}

KvArrays KvCache::read(std::size_t layer) const {
  KvArrays copy;
  copy.batch = batch_;
  copy.columns = length_ - gone_;
  const KvView from = view(layer);
  const std::size_t size = copy.batch * shape_.n_head * copy.columns * shape_.head_dim;
  copy.keys.reserve(size);
  copy.values.reserve(size);
  for (std::size_t row = 0; row < copy.batch; ++row)
    for (std::size_t head = 0; head < shape_.n_head; ++head)
      for (std::size_t column = gone_; column < length_; ++column) {
        const std::size_t start = row * from.row_stride + head * from.head_stride + slot(column) * shape_.head_dim;
        copy.keys.insert(copy.keys.end(), from.keys + start, from.keys + start + shape_.head_dim);
        copy.values.insert(copy.values.end(), from.values + start, from.values + start + shape_.head_dim);
      }
  return copy;
}

void KvCache::reserve(std::size_t batch, std::size_t new_columns) {
  const std::size_t held = storage_.batch == batch ? storage_.slots : 0;
  const std::size_t slots = slots_for(length_ + new_columns, held);
  if (slots == held) return;
  Storage larger = allocate(batch, slots);
  if (length_ > 0) copy_rows(storage_, larger, std::identity{});
  storage_ = std::move(larger);
}

void KvCache::update(std::size_t layer, const KvChunk& chunk, std::size_t batch, std::span<const SlotWrite> writes) noexcept {
  const KvView where = view(layer);
  float* keys = storage_.data.get() + (where.keys - storage_.data.get());
  float* values = storage_.data.get() + (where.values - storage_.data.get());
  for (std::size_t row = 0; row < batch; ++row)
    for (const SlotWrite& write : writes)
      for (std::size_t head = 0; head < shape_.n_head; ++head) {
        const std::size_t from = row * chunk.row_stride + write.t * chunk.column_stride + head * shape_.head_dim;
        const std::size_t to = row * where.row_stride + head * where.head_stride + write.slot * shape_.head_dim;
        std::copy_n(chunk.keys + from, shape_.head_dim, keys + to);
        std::copy_n(chunk.values + from, shape_.head_dim, values + to);
      }
}

void KvCache::advance(std::size_t batch, std::size_t new_length) noexcept {
  batch_ = batch;
  length_ = new_length;
  const std::optional<std::size_t> window = window_in_force();
  if (window && new_length > *window) gone_ = std::max(gone_, new_length - *window);
}

void KvCache::crop(std::size_t length) noexcept {
  length_ = length;
  gone_ = std::min(gone_, length);
  if (length == 0) batch_ = 0;
  if (poisoned_) poison_empty_slots();
}

void KvCache::gather(std::span<const std::size_t> rows) {
  Storage picked = allocate(rows.size(), storage_.slots);
  copy_rows(storage_, picked, [rows](std::size_t row) { return rows[row]; });
  storage_ = std::move(picked);
  batch_ = rows.size();
}

void KvCache::reset() noexcept { crop(0); }

void KvCache::restore(std::span<const KvArrays> layers, std::size_t length, std::size_t gone) {
  check_restorable(layers, length, gone);
  if (length == 0) return;
  const std::size_t batch = layers.front().batch;
  const std::size_t slots = slots_for(length, 0);
  Storage filled = allocate(batch, slots);
  std::swap(storage_, filled);
  for (std::size_t layer = 0; layer < layers.size(); ++layer) write_all(layer, layers[layer], gone);
  batch_ = batch;
  length_ = length;
  gone_ = gone;
}

void KvCache::check_restorable(std::span<const KvArrays> layers, std::size_t length, std::size_t gone) const {
  const auto refuse = [](std::string found, std::string expected) {
    throw ShapeError({"cache restore", std::move(found), std::move(expected), ""});
  };
  if (length_ != 0) refuse(fmt::format("the cache holds {} columns", length_), "an empty cache");
  if (layers.empty() || layers.size() != shape_.n_layer)
    refuse(fmt::format("{} layers", layers.size()), fmt::format("{}", shape_.n_layer));
  const std::size_t lost_at_least = window_in_force() && length > *window_in_force() ? length - *window_in_force() : 0;
  if (gone > length || gone < lost_at_least || (gone > 0 && !window_in_force()))
    refuse(fmt::format("length {} with {} columns gone", length, gone), "a history this kind of cache can have");
  if (kind() == CacheKind::fixed && length > *capacity())
    refuse(fmt::format("{} columns", length), fmt::format("at most the capacity {}", *capacity()));
  for (const KvArrays& layer : layers) {
    const std::array extents{layer.batch, shape_.n_head, length - gone, shape_.head_dim};
    const auto size = checked_product(extents);
    if ((layer.batch == 0) != (length == 0) || layer.batch != layers.front().batch || layer.columns != length - gone || size != layer.keys.size() ||
        size != layer.values.size())
      refuse(fmt::format("{} rows, {} columns, {} keys and {} values in a layer", layer.batch, layer.columns, layer.keys.size(),
                         layer.values.size()),
             fmt::format("the same rows in every layer, {} columns, and keys and values of that shape", length - gone));
  }
}

void KvCache::write_all(std::size_t layer, const KvArrays& arrays, std::size_t gone) noexcept {
  // The arrays are [batch, n_head, columns, head_dim]: seen as one head of batch * n_head rows, so is the storage.
  const KvView where = view(layer);
  const auto offset = static_cast<std::size_t>(where.keys - storage_.data.get());
  const std::size_t values_offset = offset + storage_.batch * where.row_stride;
  for (std::size_t block = 0; block < arrays.batch * shape_.n_head; ++block)
    for (std::size_t i = 0; i < arrays.columns; ++i) {
      const std::size_t from = (block * arrays.columns + i) * shape_.head_dim;
      const std::size_t to = block * where.head_stride + slot(gone + i) * shape_.head_dim;
      std::copy_n(arrays.keys.data() + from, shape_.head_dim, storage_.data.get() + offset + to);
      std::copy_n(arrays.values.data() + from, shape_.head_dim, storage_.data.get() + values_offset + to);
    }
}

void KvCache::poison(bool on) noexcept {
  poisoned_ = on;
  if (on) poison_empty_slots();
}

void KvCache::poison_empty_slots() noexcept {
  const std::size_t blocks = 2 * shape_.n_layer * storage_.batch * shape_.n_head;
  for (std::size_t block = 0; block < blocks; ++block) {
    float* slots = storage_.data.get() + block * storage_.slots * shape_.head_dim;
    for (std::size_t column = length_; column < gone_ + storage_.slots; ++column)
      std::fill_n(slots + slot(column) * shape_.head_dim, shape_.head_dim, std::numeric_limits<float>::quiet_NaN());
  }
}

}  // namespace kvproof
