#include <algorithm>

#include "harness/laws/builder.hpp"
#include "harness/laws/law_groups.hpp"

namespace kvproof::harness {
namespace {

LawCase grows(const LawContext& context) {
  TraceBuilder b(context);
  const std::string cache = b.make(b.any_kind(), 24, 1 + b.random.below(8));
  b.length(cache);
  std::size_t rows = b.batch();
  for (int step = 0; step < 6; ++step) {
    b.feed(cache, b.tokens(rows, b.size(1, 3)));
    b.length(cache);
    if (step == 2) b.length(b.clone(cache));
    if (step == 3 && b.state(cache).length != 0) b.crop(cache, b.state(cache).kind == "static_sliding_window" ? b.state(cache).length : b.size(0, b.state(cache).length));
    if (step == 4) b.add(Reset{cache});
    if (b.state(cache).length == 0) rows = b.batch();
    b.length(cache);
  }
  return b.finish();
}

LawCase rows(const LawContext& context) {
  TraceBuilder b(context);
  const std::string cache = b.make(b.any_kind(), 24, 5);
  const std::size_t batch = b.batch();
  const std::size_t pads = b.size(0, 2);
  Rows mask(batch, std::vector<std::int64_t>(4, 1));
  mask.front() = right_padded(pads, 4);
  b.feed(cache, b.tokens(batch, 4), {.mask = mask, .positions = Positions::from_mask});
  for (const char* logits : {"last", "all", "none", "last"}) b.feed(cache, b.tokens(batch, b.size(1, 4)), {.logits = logits});
  b.full_pass(b.tokens(batch, b.size(1, 5)), {.logits = b.index() % 2 == 0 ? "last" : "none"});
  b.feed(cache, b.tokens(batch, 1));
  return b.finish();
}

/// One long history, fed whole, one by one, and in random cuts: every column has the same logits.
LawCase chunking(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t n = b.size(4, 12), batch = b.batch();
  const Rows ids = b.tokens(batch, n);
  const std::string kind = b.any_kind();
  const std::size_t window = b.size(1, 14);
  std::vector<std::vector<std::size_t>> cuts{{n}, std::vector<std::size_t>(n, 1), {n - 1, 1}, {1, n - 1}, b.cut(n, 4)};
  for (const auto& chunks : cuts) {
    const std::string cache = b.make(kind, std::max(n, window) + b.random.below(5), window);
    b.feed_in_chunks(cache, ids, chunks);
    b.drop(cache);
  }
  if (kind != "static_sliding_window") b.full_pass(ids);
  return b.finish();
}

LawCase refeed(const LawContext& context) {
  TraceBuilder b(context);
  const std::string cache = b.make(b.any_kind(), 24, 4 + b.random.below(8));
  const std::size_t n = b.size(2, 5);
  const Rows prefix = b.tokens(b.batch(), n);
  b.feed(cache, prefix);
  b.feed(cache, prefix);
  b.length(cache);
  Rows longer = prefix;
  for (auto& row : longer) row.push_back(b.tokens(1).front());
  b.feed(cache, longer);
  b.length(cache);
  b.full_pass(prefix);
  b.full_pass(b.tokens(prefix.size(), n));
  b.full_pass(prefix);
  return b.finish();
}

/// Up to the edge and over it: n - 1, n, n + 1; then the cache still works.
void walk_edge(TraceBuilder& b, const std::string& cache, std::size_t batch, std::size_t edge, bool in_one_go) {
  b.feed(cache, b.tokens(batch, edge + (in_one_go ? 1 : 0)));
  if (in_one_go) b.feed(cache, b.tokens(batch, edge));
  b.feed(cache, b.tokens(batch, 1));
  b.feed(cache, b.tokens(batch, 1), {.use_cache = false});
  b.length(cache);
}

LawCase limits(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t batch = b.batch();
  const bool one_go = (b.index() / 4) % 2 == 0;
  if (b.index() % 4 < 2) {  // capacity
    const std::size_t capacity = b.size(1, 9);
    const std::string cache = b.make("static", capacity);
    if (capacity > 1 && !one_go) b.feed(cache, b.tokens(batch, capacity - 1));
    walk_edge(b, cache, batch, one_go ? capacity : 1, one_go);
    if (!one_go) b.feed(cache, b.tokens(batch, 2));
    if (b.can("crop")) {
      b.crop(cache, capacity - 1);
      b.feed(cache, b.tokens(batch, 2));
      b.feed(cache, b.tokens(batch, 1));
    }
    return b.finish();
  }
  const std::size_t n = b.model().n_positions;
  const std::string cache = b.make(b.index() % 4 == 2 ? b.kind("dynamic") : b.kind("static_sliding_window"), n + 4, b.size(2, 8));
  if (!one_go) b.feed(cache, b.tokens(batch, n - 1), {.logits = "last"});
  if (!one_go) b.feed(cache, b.tokens(batch, 2));
  walk_edge(b, cache, batch, one_go ? n : 1, one_go);
  b.feed(cache, b.tokens(batch, 2), {.positions = Positions::random});  // longer than n_positions in columns, never in positions
  b.length(cache);
  b.full_pass(b.tokens(batch, n + 1));
  return b.finish();
}

}  // namespace

std::vector<Law> length_laws() {
  return {
      {"length.grows", "length is P+T after a forward, and moves in no other way than the op says", {.oracle = true}, grows},
      {"length.rows", "logits have exactly the rows asked for, and vocab_size columns", {.oracle = true}, rows},
      {"length.chunking", "any cutting of the tokens into calls gives the same logits", {.same = true}, chunking},
      {"length.refeed", "the prefix fed again is a longer history, with the logits of that history", {.oracle = true}, refeed},
      {"length.limits", "n_positions and capacity: the exact fit is accepted, one more refused, and then the cache still works", {.oracle = true}, limits},
  };
}

}  // namespace kvproof::harness
