#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <span>

#include "harness/defects/fault_groups.hpp"

namespace kvproof::harness {
namespace {

/// The caches of one family: each lane its own.
using Families = std::map<std::pair<std::size_t, std::string>, std::size_t>;

/// Copies columns [from, to) of `source` over the same columns of `target`, where both hold them. True if there were any.
bool overwrite(KvCache& source, KvCache& target, std::size_t from, std::size_t to) {
  const std::size_t first = std::max({from, source.gone(), target.gone()}), last = std::min({to, source.length(), target.length()});
  if (source.batch() != target.batch() || first >= last) return false;
  const KvShape& shape = source.shape();
  if (shape.n_layer != target.shape().n_layer || shape.n_head != target.shape().n_head || shape.head_dim != target.shape().head_dim) return false;
  for (std::size_t layer = 0; layer < shape.n_layer; ++layer) {
    const KvView read = source.view(layer), write = target.view(layer);
    for (std::size_t row = 0; row < source.batch(); ++row)
      for (std::size_t head = 0; head < shape.n_head; ++head)
        for (std::size_t column = first; column < last; ++column) {
          const std::size_t in = row * read.row_stride + head * read.head_stride + source.slot(column) * shape.head_dim;
          const std::size_t out = row * write.row_stride + head * write.head_stride + target.slot(column) * shape.head_dim;
          std::memcpy(const_cast<float*>(write.keys) + out, read.keys + in, shape.head_dim * sizeof(float));
          std::memcpy(const_cast<float*>(write.values) + out, read.values + in, shape.head_dim * sizeof(float));
        }
  }
  return true;
}

/// After each forward its new columns are written into the caches that `shares` names, too.
Fault writes_through(const Fired& fired, bool all_caches) {
  Fault fault;
  auto families = std::make_shared<Families>();
  fault.call = [=](NumberedLane at, const Call& call) {
    const auto* forward = std::get_if<Forward>(&call);
    Cache* written = forward != nullptr && forward->cache && forward->use_cache ? at.lane.cache(*forward->cache) : nullptr;
    const std::size_t before = written != nullptr ? written->length() : 0;
    const auto family = [&](const std::string& name) { return families->try_emplace({at.number, name}, families->size()).first->second; };
    Reply reply = at.lane.call(call);
    if (const auto* clone = std::get_if<Clone>(&call); clone != nullptr && std::holds_alternative<Answer>(reply)) {
      const std::size_t of_parent = family(clone->from);
      (*families)[{at.number, clone->cache}] = of_parent;
    }
    for (const std::string& name : at.lane.names()) {
      if (written == nullptr || name == *forward->cache || !(all_caches || family(name) == family(*forward->cache))) continue;
      if (overwrite(written->storage(), at.lane.cache(name)->storage(), before, written->length())) ++*fired;
    }
    return reply;
  };
  return fault;
}

/// Changes the stored columns [from, length) of a cache, head by head: `change` gets head_dim keys and as many values.
template <typename Change>
void each_stored_head(KvCache& cache, std::size_t from, const Change& change) {
  const KvShape& shape = cache.shape();
  for (std::size_t layer = 0; layer < shape.n_layer; ++layer) {
    const KvView view = cache.view(layer);
    for (std::size_t row = 0; row < cache.batch(); ++row)
      for (std::size_t head = 0; head < shape.n_head; ++head)
        for (std::size_t column = std::max(from, cache.gone()); column < cache.length(); ++column) {
          const std::size_t at = row * view.row_stride + head * view.head_stride + cache.slot(column) * shape.head_dim;
          change(std::span(const_cast<float*>(view.keys) + at, shape.head_dim), std::span(const_cast<float*>(view.values) + at, shape.head_dim));
        }
  }
}

void wipe(KvCache& cache) {
  each_stored_head(cache, 0, [](std::span<float> keys, std::span<float>) { std::ranges::fill(keys, 0.0F); });
}

/// The nearest number with the 11 significant bits of half precision.
float half(float value) {
  int exponent = 0;
  const double mantissa = std::frexp(static_cast<double>(value), &exponent);
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(mantissa, 11)), exponent - 11));
}

/// Keys and values are stored in half precision; the sums stay in float.
Fault cache_fp16(const Fired& fired) {
  Fault fault;
  fault.call = [fired](NumberedLane at, const Call& call) {
    const auto* forward = std::get_if<Forward>(&call);
    Cache* cache = forward != nullptr && forward->cache ? at.lane.cache(*forward->cache) : nullptr;
    const std::size_t before = cache != nullptr ? cache->length() : 0;
    Reply reply = at.lane.call(call);
    if (cache == nullptr || cache->length() == before) return reply;
    ++*fired;
    each_stored_head(cache->storage(), before, [](std::span<float> keys, std::span<float> values) {
      std::ranges::transform(keys, keys.begin(), half);
      std::ranges::transform(values, values.begin(), half);
    });
    return reply;
  };
  return fault;
}

/// Dropping or resetting one of a family of clones wipes the keys of the others.
Fault drop_wipes_clones(const Fired& fired) {
  Fault fault;
  auto families = std::make_shared<Families>();
  fault.call = [=](NumberedLane at, const Call& call) {
    const auto family = [&](const std::string& name) { return families->try_emplace({at.number, name}, families->size()).first->second; };
    Reply reply = at.lane.call(call);
    if (!std::holds_alternative<Answer>(reply)) return reply;
    if (const auto* clone = std::get_if<Clone>(&call)) {
      const std::size_t of_parent = family(clone->from);
      (*families)[{at.number, clone->cache}] = of_parent;
    }
    const bool ends = std::holds_alternative<Drop>(call) || std::holds_alternative<Reset>(call);
    const std::string gone = ends ? std::string(*cache_of(call)) : "";
    for (const std::string& name : at.lane.names()) {
      if (!ends || name == gone || family(name) != family(gone) || at.lane.cache(name)->length() == 0) continue;
      wipe(at.lane.cache(name)->storage());
      ++*fired;
    }
    if (std::holds_alternative<Drop>(call)) families->erase({at.number, gone});
    return reply;
  };
  return fault;
}

}  // namespace

std::vector<KnownFault> storage_faults() {
  return {
      {"clone-shares", "a clone has its own length but the same keys and values", {"isolation.clone"}, [](const Fired& fired) { return writes_through(fired, false); }},
      {"shared-scratch", "keys and values live in the model: what one cache appends, the others hold", {"isolation.interleaved"},
       [](const Fired& fired) { return writes_through(fired, true); }},
      {"cache-fp16", "keys and values are stored in half precision", {"numerics.oracle", "numerics.kv"}, cache_fp16},
      {"drop-wipes-clones", "dropping or resetting a cache wipes its clones", {"isolation.clone_chain"}, drop_wipes_clones},
  };
}

}  // namespace kvproof::harness
