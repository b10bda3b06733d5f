#include "harness/laws/builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kvproof::harness {
namespace {

constexpr std::array<const char*, 3> kKinds = {"dynamic", "static", "static_sliding_window"};

/// Calls that change what a live cache holds.
bool writes(const Call& call) {
  return std::holds_alternative<Forward>(call) || std::holds_alternative<Crop>(call) || std::holds_alternative<Gather>(call) ||
         std::holds_alternative<Reset>(call) || std::holds_alternative<Load>(call) || std::holds_alternative<Drop>(call);
}

std::vector<std::int64_t> random_positions(Random& random, std::size_t count, std::size_t n_positions) {
  std::vector<std::int64_t> row(count);
  for (std::int64_t& position : row) position = random.between(0, static_cast<std::int64_t>(n_positions) - 1);
  return row;
}

}  // namespace

TraceBuilder::TraceBuilder(const LawContext& context) : random(context.seed), context_(context), world_(context.models) {}

std::size_t TraceBuilder::most_rows() const { return std::min<std::size_t>(context_.capabilities.max_batch.value_or(4), 4); }

std::string TraceBuilder::kind(const std::string& wanted) const {
  const auto& kinds = context_.capabilities.kinds;
  return kinds.contains(wanted) || kinds.empty() ? wanted : *kinds.begin();
}

std::string TraceBuilder::any_kind() const { return kind(kKinds[context_.index % kKinds.size()]); }

std::vector<std::int64_t> TraceBuilder::tokens(std::size_t count, const std::string& name) {
  std::vector<std::int64_t> row(count);
  for (std::int64_t& token : row) token = random.between(0, static_cast<std::int64_t>(model(name).vocab_size) - 1);
  return row;
}

Rows TraceBuilder::tokens(std::size_t rows, std::size_t columns, const std::string& name) {
  Rows batch(rows);
  for (auto& row : batch) row = tokens(columns, name);
  return batch;
}

Outcome TraceBuilder::add(const Call& call, std::size_t lane) {
  Outcome outcome = world_.apply(call);
  if (const auto name = cache_of(call); name && lane != 0) elsewhere_.insert(std::string(*name));
  trace_.push_back({call, std::nullopt, std::nullopt, lane});
  if (!probing_ && lane == 0) add_probes(call, outcome);
  return outcome;
}

std::string TraceBuilder::make(const std::string& kind, std::size_t capacity, std::size_t window, const std::string& model) {
  NewCache call;
  call.cache = fmt::format("c{}", made_++);
  call.kind = kind;
  if (kind != "dynamic") call.capacity = static_cast<std::int64_t>(capacity);
  if (kind == "static_sliding_window") call.window = static_cast<std::int64_t>(window);
  if (model != "main") call.model = model;
  add(call);
  return call.cache;
}

Forward TraceBuilder::forward_call(const std::string& cache, const Rows& input_ids, const Feed& feed) {
  const CacheState* held = cache.empty() ? nullptr : world_.find(cache);
  const std::size_t past = held != nullptr ? held->length : 0, columns = input_ids.empty() ? 0 : input_ids.front().size();
  Forward call;
  if (!cache.empty()) call.cache = cache;
  call.input_ids = input_ids;
  call.logits = feed.logits;
  call.use_cache = feed.use_cache;
  Rows mask(input_ids.size());
  bool hides = false;
  for (std::size_t b = 0; b < mask.size(); ++b) {
    if (past != 0 && b < held->mask.size()) mask[b].assign(held->mask[b].begin(), held->mask[b].end());
    if (feed.mask) mask[b].insert(mask[b].end(), (*feed.mask)[b].begin(), (*feed.mask)[b].end());
    else mask[b].resize(past + columns, 1);
    hides = hides || std::ranges::find(mask[b], 0) != mask[b].end();
  }
  const std::string& name = held != nullptr ? held->model : "main";
  if (feed.positions == Positions::from_mask) {
    call.position_ids.emplace();
    for (const auto& row : mask) {
      const auto all = positions_of_mask(row);
      call.position_ids->emplace_back(all.end() - static_cast<std::ptrdiff_t>(columns), all.end());
    }
  } else if (feed.positions == Positions::random) {
    call.position_ids.emplace();
    for (std::size_t b = 0; b < mask.size(); ++b) call.position_ids->push_back(random_positions(random, columns, model(name).n_positions));
  }
  if (hides || feed.say_mask) call.attention_mask = std::move(mask);
  return call;
}

Outcome TraceBuilder::feed(const std::string& cache, const Rows& input_ids, const Feed& feed) { return add(forward_call(cache, input_ids, feed)); }

void TraceBuilder::full_pass(const Rows& input_ids, const Feed& feed) { add(forward_call("", input_ids, feed)); }

void TraceBuilder::drop(const std::string& cache) {
  if (can("drop")) add(Drop{cache});
}

void TraceBuilder::feed_in_chunks(const std::string& cache, const Rows& input_ids, const std::vector<std::size_t>& chunks, const Feed& how) {
  std::size_t from = 0;
  for (const std::size_t count : chunks) {
    Feed part = how;
    if (how.mask) part.mask = columns_of(*how.mask, from, count);
    feed(cache, columns_of(input_ids, from, count), part);
    from += count;
  }
}

std::vector<std::size_t> TraceBuilder::cut(std::size_t n, std::size_t most) {
  std::vector<std::size_t> chunks;
  while (n != 0) {
    chunks.push_back(size(1, std::min(n, most)));
    n -= chunks.back();
  }
  return chunks;
}

std::string TraceBuilder::clone(const std::string& cache) {
  const std::string name = fmt::format("c{}", made_++);
  add(Clone{name, cache});
  return name;
}

void TraceBuilder::length(const std::string& cache) {
  Outcome outcome = add(Length{cache});
  trace_.back().expect = outcome.length;
}

void TraceBuilder::read_all(const std::string& cache) {
  for (std::size_t layer = 0; can("read") && layer < model(state(cache).model).n_layer; ++layer) add(Read{cache, static_cast<std::int64_t>(layer)});
}

void TraceBuilder::add_probes(const Call& call, const Outcome& outcome) {
  if (outcome.refusal || (writes(call) && world_.caches().size() > 1 + elsewhere_.size())) probe_all();
}

void TraceBuilder::probe_all() {
  probing_ = true;
  std::vector<std::string> live;
  for (const auto& [name, held] : world_.caches())
    if (!elsewhere_.contains(name)) live.push_back(name);
  for (const std::string& name : live) probe(name);
  probing_ = false;
}

void TraceBuilder::probe(const std::string& cache) {
  length(cache);
  if (can("read")) add(Read{cache, random.between(0, static_cast<std::int64_t>(model(state(cache).model).n_layer) - 1)});
  if (!can("clone") || !can("drop") || state(cache).length == 0) return;
  const CacheState& held = state(cache);
  const bool full = held.kind == "static" && held.length >= *held.capacity;
  if (full && (held.length == 1 || !can("crop"))) return;
  const std::string probe = fmt::format("p{}", made_++);
  add(Clone{probe, cache});
  if (full) crop(probe, held.length - 1);
  add(forward_call(probe, tokens(held.rows.size(), 1, held.model), {.positions = Positions::random}));
  add(Drop{probe});
}

LawCase TraceBuilder::finish(bool poison) {
  LawCase result;
  result.trace = std::move(trace_);
  result.options.poison = poison && context_.capabilities.poison;
  return result;
}

Rows columns_of(const Rows& rows, std::size_t from, std::size_t count) {
  Rows part;
  for (const auto& row : rows) {
    const auto start = row.begin() + static_cast<std::ptrdiff_t>(from);
    part.emplace_back(start, start + static_cast<std::ptrdiff_t>(count));
  }
  return part;
}

std::vector<std::int64_t> left_padded(std::size_t pads, std::size_t columns) {
  std::vector<std::int64_t> row(columns, 1);
  std::fill_n(row.begin(), std::min(pads, columns), 0);
  return row;
}

std::vector<std::int64_t> right_padded(std::size_t pads, std::size_t columns) {
  std::vector<std::int64_t> row = left_padded(pads, columns);
  std::ranges::reverse(row);
  return row;
}

}  // namespace kvproof::harness
