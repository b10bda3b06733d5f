#include "harness/history/world.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/error.hpp"
#include "engine/safetensors/text.hpp"
#include "harness/trace/trace_file.hpp"

namespace kvproof::harness {
namespace {

constexpr std::size_t kLongestName = 80;  // of a cache or a model in a message

Outcome refused(Refusal refusal) {
  Outcome outcome;
  outcome.refusal = std::move(refusal);
  return outcome;
}

Outcome unknown(const std::string& cache) { return refused({Code::unknown_cache, fmt::format("no cache {}", cut(cache, kLongestName))}); }

Outcome now_holds(const CacheState& cache) {
  Outcome outcome;
  outcome.length = static_cast<std::int64_t>(cache.length);
  return outcome;
}

std::optional<std::size_t> size_of(const std::optional<std::int64_t>& value) {
  return value ? std::optional(static_cast<std::size_t>(*value)) : std::nullopt;
}

CacheState new_state(const NewCache& call) {
  CacheState state;
  state.kind = call.kind;
  state.model = call.model.value_or("main");
  state.capacity = size_of(call.capacity);
  if (call.window) state.window = std::min(*size_of(call.window), *state.capacity);
  return state;
}

void make_empty(CacheState& cache) {
  cache.rows.clear();
  cache.mask.clear();
  cache.length = cache.gone = 0;
}

std::vector<std::uint8_t> mask_row(const std::optional<Rows>& mask, std::size_t row, std::size_t columns) {
  if (!mask) return std::vector<std::uint8_t>(columns, 1);
  return {(*mask)[row].begin(), (*mask)[row].end()};
}

/// The rows of `cache` (none = empty) with the call's columns behind them.
std::vector<RowHistory> fed(const CacheState* cache, const Forward& call, std::uint64_t& origin) {
  const std::size_t past = cache != nullptr ? cache->length : 0;
  std::vector<RowHistory> rows = past != 0 ? cache->rows : std::vector<RowHistory>(call.input_ids.size());
  for (std::size_t b = 0; b < rows.size(); ++b) {
    const std::size_t columns = call.input_ids[b].size();
    const auto mask = std::make_shared<const std::vector<std::uint8_t>>(mask_row(call.attention_mask, b, past + columns));
    if (cache != nullptr) rows[b].window = cache->window;
    for (std::size_t t = 0; t < columns; ++t) {
      const std::int64_t position = call.position_ids ? (*call.position_ids)[b][t] : static_cast<std::int64_t>(past + t);
      rows[b].columns.push_back({call.input_ids[b][t], position, mask, origin++});
    }
  }
  return rows;
}

/// Takes over what a forward fed.
void append(CacheState& cache, const std::vector<RowHistory>& rows) {
  cache.rows = rows;
  cache.mask.clear();
  for (const RowHistory& row : rows) cache.mask.push_back(*row.columns.back().mask);
  cache.length = rows.front().columns.size();
  if (cache.window && cache.length > *cache.window) cache.gone = std::max(cache.gone, cache.length - *cache.window);
}

/// Rows and their columns.
struct Extent {
  std::size_t rows = 0, columns = 0;
};

Extent extent_of(const Rows& input_ids, std::size_t past) {
  Extent extent{input_ids.size(), past};
  for (const auto& row : input_ids) extent.columns = std::max(extent.columns, past + row.size());
  return extent;
}

Extent extent_of(const CacheState* cache) { return cache != nullptr ? Extent{cache->rows.size(), cache->length} : Extent{}; }

/// What a call makes anew or copies, were it accepted.
struct MakesColumns {
  const World& world;
  Extent operator()(const Forward& call) const {
    return extent_of(call.input_ids, call.cache ? extent_of(world.find(*call.cache)).columns : 0);
  }
  Extent operator()(const Generate& call) const { return extent_of(call.input_ids, 0); }
  Extent operator()(const Gather& call) const { return {call.rows.size(), extent_of(world.find(call.cache)).columns}; }
  Extent operator()(const Clone& call) const { return extent_of(world.find(call.from)); }
  Extent operator()(const Save& call) const { return extent_of(world.find(call.cache)); }
  Extent operator()(const Read& call) const { return extent_of(world.find(call.cache)); }
  Extent operator()(const Load& call) const {
    const auto from = world.saved().find(call.from);
    return from == world.saved().end() ? Extent{} : extent_of(&from->second);
  }
  Extent operator()(const auto&) const { return {}; }
};

}  // namespace

const CacheState* World::find(const std::string& cache) const {
  const auto found = caches_.find(cache);
  return found == caches_.end() ? nullptr : &found->second;
}

CacheState* World::live(const std::string& cache) {
  const auto found = caches_.find(cache);
  return found == caches_.end() ? nullptr : &found->second;
}

const ModelFacts& World::model(const std::string& name) const {
  const auto found = models_.find(name);
  if (found == models_.end()) throw DataError({"trace", fmt::format("model {}", shown(name)), "a model of the header's \"models\"", ""});
  return found->second;
}

Outcome World::apply(const Call& call) {
  if (const auto name = model_of(call)) (void)model(*name);  // before any refusal: such a trace is no trace
  require_bearable(call);
  return std::visit([this](const auto& each) { return apply_one(each); }, call);
}

void World::require_bearable(const Call& call) {
  const Extent extent = std::visit(MakesColumns{*this}, call);
  if (extent.columns > kLongestHistory)
    throw DataError({"trace", fmt::format("a history of {} columns", extent.columns), fmt::format("at most {}", kLongestHistory), ""});
  if (extent.rows > kMostColumns || made_ + extent.rows * extent.columns > kMostColumns)
    throw DataError({"trace", fmt::format("{} rows of {} columns after {} columns", extent.rows, extent.columns, made_),
                     fmt::format("at most {} columns in all", kMostColumns), ""});
  made_ += extent.rows * extent.columns;
}

Outcome World::apply_one(const NewCache& call) {
  if (caches_.contains(call.cache)) return refused({Code::cache_exists, fmt::format("cache {} exists", cut(call.cache, kLongestName))});
  if (auto no = refuse_new(call)) return refused(*no);
  return now_holds(caches_[call.cache] = new_state(call));
}

Outcome World::apply_one(const Forward& call) {
  CacheState* cache = call.cache ? live(*call.cache) : nullptr;
  if (call.cache && cache == nullptr) return unknown(*call.cache);
  const std::string& name = call.model ? *call.model : cache != nullptr ? cache->model : "main";
  const ModelFacts& facts = model(name);
  if (cache != nullptr && name != cache->model)
    return refused({Code::model_mismatch, fmt::format("cache {} belongs to {}, not {}", cut(*call.cache, kLongestName), cut(cache->model, kLongestName), cut(name, kLongestName))});
  if (auto no = refuse_forward(call, cache, facts)) return refused(*no);

  Outcome outcome;
  outcome.model = name;
  outcome.rows = fed(cache, call, fed_);
  const std::size_t total = outcome.rows.front().columns.size(), fresh = call.input_ids.front().size();
  outcome.columns = call.logits == "all" ? fresh : call.logits == "last" ? 1 : 0;
  outcome.first = total - outcome.columns;
  if (cache != nullptr) outcome.storage = fmt::format("{} {} {}", cache->kind, cache->capacity.value_or(0), cache->window.value_or(0));
  if (cache != nullptr && call.use_cache) append(*cache, outcome.rows);
  if (cache != nullptr) outcome.length = static_cast<std::int64_t>(cache->length);
  return outcome;
}

Outcome World::apply_one(const Clone& call) {
  const CacheState* from = find(call.from);
  if (from == nullptr) return unknown(call.from);
  if (caches_.contains(call.cache)) return refused({Code::cache_exists, fmt::format("cache {} exists", cut(call.cache, kLongestName))});
  return now_holds(caches_[call.cache] = *from);
}

Outcome World::apply_one(const Crop& call) {
  CacheState* cache = live(call.cache);
  if (cache == nullptr) return unknown(call.cache);
  if (auto no = refuse_crop(call, *cache)) return refused(*no);
  const auto length = static_cast<std::size_t>(call.length);
  if (length == 0) make_empty(*cache);
  for (RowHistory& row : cache->rows) row.columns.resize(length);
  for (auto& bits : cache->mask) bits.resize(length);
  cache->length = length;
  cache->gone = std::min(cache->gone, length);
  return now_holds(*cache);
}

Outcome World::apply_one(const Gather& call) {
  CacheState* cache = live(call.cache);
  if (cache == nullptr) return unknown(call.cache);
  if (auto no = refuse_gather(call, *cache)) return refused(*no);
  CacheState moved = *cache;
  moved.rows.clear();
  moved.mask.clear();
  for (const std::int64_t row : call.rows) {
    moved.rows.push_back(cache->rows[static_cast<std::size_t>(row)]);
    moved.mask.push_back(cache->mask[static_cast<std::size_t>(row)]);
  }
  return now_holds(*cache = std::move(moved));
}

Outcome World::apply_one(const Reset& call) {
  CacheState* cache = live(call.cache);
  if (cache == nullptr) return unknown(call.cache);
  make_empty(*cache);
  return now_holds(*cache);
}

Outcome World::apply_one(const Drop& call) {
  if (caches_.erase(call.cache) == 0) return unknown(call.cache);
  return {};
}

Outcome World::apply_one(const Length& call) {
  const CacheState* cache = find(call.cache);
  return cache == nullptr ? unknown(call.cache) : now_holds(*cache);
}

Outcome World::apply_one(const Read& call) {
  const CacheState* cache = find(call.cache);
  if (cache == nullptr) return unknown(call.cache);
  if (auto no = refuse_read(call, model(cache->model))) return refused(*no);
  Outcome outcome = now_holds(*cache);
  outcome.model = cache->model;
  outcome.rows = cache->rows;
  outcome.first = cache->gone;
  outcome.columns = cache->length - cache->gone;
  outcome.present = cache->mask;
  return outcome;
}

Outcome World::apply_one(const Save& call) {
  const CacheState* cache = find(call.cache);
  if (cache == nullptr) return unknown(call.cache);
  return now_holds(saved_[call.to] = *cache);
}

Outcome World::apply_one(const Load& call) {
  const auto from = saved_.find(call.from);
  if (from == saved_.end()) return refused({Code::name_unknown, fmt::format("nothing is saved as {}", cut(call.from, kLongestName))});
  return now_holds(caches_[call.cache] = from->second);
}

Outcome World::apply_one(const Generate& call) {
  Outcome outcome;
  outcome.model = call.model.value_or("main");
  const ModelFacts& facts = model(outcome.model);
  if (auto no = refuse_generate(call, facts)) return refused(*no);
  Forward prompt{.input_ids = call.input_ids, .attention_mask = call.attention_mask};
  if (call.attention_mask) {
    prompt.position_ids.emplace();
    for (const auto& row : *call.attention_mask) prompt.position_ids->push_back(positions_of_mask(row));
  }
  outcome.rows = fed(nullptr, prompt, fed_);
  if (call.window) {
    const auto window = static_cast<std::size_t>(std::min(*call.window, *call.capacity));
    for (RowHistory& row : outcome.rows) row.window = window;
  }
  return outcome;
}

}  // namespace kvproof::harness
