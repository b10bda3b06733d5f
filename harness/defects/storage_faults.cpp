#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "harness/defects/fault_groups.hpp"
#include "harness/defects/stored_heads.hpp"

namespace kvproof::harness {
namespace {

/// Which caches descend from the same one: clones are of their parent's family.
class Families {
 public:
  std::size_t of(const std::string& name) {
    const auto [found, fresh] = number_.try_emplace(name, next_);
    if (fresh) ++next_;
    return found->second;
  }
  void joins(const Clone& clone) { number_[clone.cache] = of(clone.from); }
  void leaves(const std::string& name) { number_.erase(name); }

 private:
  std::map<std::string, std::size_t> number_;
  std::size_t next_ = 0;
};

/// Copies columns [from, to) of `source` over the same columns of `target`, where both hold them. True if there were any.
bool overwrite(const KvCache& source, KvCache& target, std::size_t from, std::size_t to) {
  const std::size_t first = std::max({from, source.gone(), target.gone()}), last = std::min({to, source.length(), target.length()});
  if (source.batch() != target.batch() || source.shape() != target.shape() || first >= last) return false;
  const auto copy = [&](const StoredHead& read, const StoredHead& write) {
    for (std::size_t column = first; column < last; ++column) {
      std::ranges::copy(read.key(source.slot(column)), write.key(target.slot(column)).begin());
      std::ranges::copy(read.value(source.slot(column)), write.value(target.slot(column)).begin());
    }
  };
  each_stored_head(copy, source, target);
  return true;
}

/// After each forward its new columns are written into the lane's other caches, too: into all, or into those of its family.
Fault writes_through(const Fired& fired, bool all_caches) {
  return remembering<Families>([=](Families& family, EngineLane& lane, const Call& call) -> Reply {
    const auto* forward = std::get_if<Forward>(&call);
    Cache* written = forward != nullptr && forward->cache && forward->use_cache ? lane.cache(*forward->cache) : nullptr;
    const std::size_t before = written != nullptr ? written->length() : 0;
    Reply reply = lane.call(call);
    if (const auto* clone = std::get_if<Clone>(&call); clone != nullptr && std::holds_alternative<Answer>(reply)) family.joins(*clone);
    for (const std::string& name : lane.names()) {
      if (written == nullptr || name == *forward->cache || !(all_caches || family.of(name) == family.of(*forward->cache))) continue;
      if (overwrite(written->storage(), lane.cache(name)->storage(), before, written->length())) ++*fired;
    }
    return reply;
  });
}

void wipe(KvCache& cache) {
  const auto zero = [&](const StoredHead& head) {
    for (std::size_t column = cache.gone(); column < cache.length(); ++column) std::ranges::fill(head.key(cache.slot(column)), 0.0F);
  };
  each_stored_head(zero, cache);
}

/// The nearest number with the 11 significant bits of half precision.
float half(float value) {
  int exponent = 0;
  const double mantissa = std::frexp(static_cast<double>(value), &exponent);
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(mantissa, 11)), exponent - 11));
}

void halve(KvCache& cache, std::size_t from) {
  const auto round = [&](const StoredHead& head) {
    for (std::size_t column = std::max(from, cache.gone()); column < cache.length(); ++column)
      for (const std::span<float> stored : {head.key(cache.slot(column)), head.value(cache.slot(column))}) std::ranges::transform(stored, stored.begin(), half);
  };
  each_stored_head(round, cache);
}

/// Keys and values are stored in half precision; the sums stay in float.
Fault cache_fp16(const Fired& fired) {
  return on<Forward>([fired](EngineLane& lane, const Forward& call) {
    Cache* cache = call.cache ? lane.cache(*call.cache) : nullptr;
    const std::size_t before = cache != nullptr ? cache->length() : 0;
    Reply reply = lane.call(call);
    if (cache == nullptr || cache->length() == before) return reply;
    ++*fired;
    halve(cache->storage(), before);
    return reply;
  });
}

/// Dropping or resetting one of a family of clones wipes the keys of the others.
Fault drop_wipes_clones(const Fired& fired) {
  return remembering<Families>([fired](Families& family, EngineLane& lane, const Call& call) -> Reply {
    Reply reply = lane.call(call);
    if (!std::holds_alternative<Answer>(reply)) return reply;
    if (const auto* clone = std::get_if<Clone>(&call)) family.joins(*clone);
    const bool ends = std::holds_alternative<Drop>(call) || std::holds_alternative<Reset>(call);
    const std::string gone = ends ? std::string(*cache_of(call)) : "";
    for (const std::string& name : lane.names()) {
      if (!ends || name == gone || family.of(name) != family.of(gone) || lane.cache(name)->length() == 0) continue;
      wipe(lane.cache(name)->storage());
      ++*fired;
    }
    if (std::holds_alternative<Drop>(call)) family.leaves(gone);
    return reply;
  });
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
