#include "harness/laws/builder.hpp"
#include "harness/laws/law_groups.hpp"
#include "harness/laws/walk.hpp"

namespace kvproof::harness {
namespace {

/// A random walk over all ops, and every third case a history of more than 20 keys.
LawCase close(const LawContext& context) {
  TraceBuilder b(context);
  if (b.index() % 3 != 0) {
    random_walk(b, 14);
    return b.finish();
  }
  const std::size_t batch = b.batch(), n = b.model().n_positions;
  const std::string cache = b.make(b.kind(b.index() % 2 == 0 ? "dynamic" : "static"), n, n);
  const std::vector<std::size_t> chunks = b.cut(n, 12);
  b.feed_in_chunks(cache, b.tokens(batch, n), chunks);
  return b.finish();
}

/// The same call on a cache and on its clone, on another cache of the same history, and twice without a cache.
LawCase repeatable(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t batch = b.batch(), window = b.size(2, 8);
  const Rows prefix = b.tokens(batch, b.size(1, 5)), chunk = b.tokens(batch, b.size(1, 5));
  const std::string kind = b.any_kind();
  for (int turn = 0; turn < 2; ++turn) {
    const std::string cache = b.make(kind, 16, window);
    b.feed(cache, prefix);
    if (b.can("clone")) {
      const std::string copy = b.clone(cache);
      b.feed(copy, chunk);
      b.drop(copy);
    }
    b.feed(cache, chunk);
    b.drop(cache);
    b.full_pass(prefix);
  }
  return b.finish();
}

/// Unlike TraceBuilder::read_all whether there is `read` or not: a backend without it is not covered by a law about it.
void read(TraceBuilder& b, const std::string& cache) {
  for (std::size_t layer = 0; layer < b.model().n_layer; ++layer) b.add(Read{cache, static_cast<std::int64_t>(layer)});
}

LawCase keys_values(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t batch = b.batch(), n = b.size(1, 5);
  const std::string cache = b.make(b.any_kind(), 20, b.size(2, 8));
  read(b, cache);  // empty: [0, H, 0, D]
  Rows mask(batch, std::vector<std::int64_t>(n, 1));
  mask.front() = left_padded(b.random.below(n), n);
  b.feed(cache, b.tokens(batch, n), {.mask = mask, .positions = Positions::from_mask});
  read(b, cache);
  b.feed(cache, b.tokens(batch, b.size(1, 4)), {.positions = Positions::random});
  read(b, cache);
  const std::string copy = b.clone(cache);
  b.feed(copy, b.tokens(batch, 1), {.positions = Positions::random});
  read(b, copy);
  read(b, cache);
  return b.finish();
}

}  // namespace

std::vector<Law> numerics_laws() {
  return {
      {"numerics.oracle", "every compared row close to the oracle; everything finite", {.oracle = true}, close},
      {"numerics.repeatable", "the same call on the same state twice gives the same bits", {.oracle = true, .repeat = true}, repeatable},
      {"numerics.kv", "K and V equal the oracle's", {.oracle = true, .same = true}, keys_values},
  };
}

}  // namespace kvproof::harness
