#include <algorithm>

#include "harness/laws/builder.hpp"
#include "harness/laws/law_groups.hpp"

namespace kvproof::harness {
namespace {

std::string sliding(TraceBuilder& b, std::size_t capacity, std::size_t window) { return b.make("static_sliding_window", capacity, window); }

/// Windows from 1 to wider than the history, capacities below the window among them; chunks around the window's size.
LawCase band(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t window = 1 + b.index() % 9, batch = b.batch();
  const std::string cache = sliding(b, b.random.chance(20) ? b.size(1, window) : window + b.random.below(4), window);
  const std::size_t in_force = *b.state(cache).window;
  for (const std::size_t columns : {b.size(1, in_force + 2), b.size(1, 3), in_force, std::size_t{1}, b.size(1, 2)})
    b.feed(cache, b.tokens(batch, columns), {.positions = Positions::random});
  b.read_all(cache);
  return b.finish();
}

/// One history in chunks shorter than, equal to and longer than the window.
LawCase chunking(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t window = b.size(2, 5), n = window * 2 + b.size(1, 5), batch = b.batch();
  const Rows ids = b.tokens(batch, n);
  std::vector<std::vector<std::size_t>> cuts{{n}, std::vector<std::size_t>(n, 1), {window, window, n - 2 * window}, {window + 1, n - window - 1}, b.cut(n, window + 1)};
  if (window > 1) cuts.push_back({window - 1, window, n - 2 * window + 1});
  for (const auto& chunks : cuts) {
    const std::string cache = sliding(b, window + b.random.below(3), window);
    b.feed_in_chunks(cache, ids, chunks);
    b.drop(cache);
  }
  return b.finish();
}

/// Rule 5 to the letter: crops before, at and after the wrap, those that are refused too; then work goes on.
LawCase crop(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t window = b.size(2, 5), batch = b.batch();
  const std::string cache = sliding(b, window + b.random.below(3), window);
  b.feed(cache, b.tokens(batch, b.index() % 3 == 0 ? b.size(1, window) : window + b.size(1, 4)));
  b.feed(cache, b.tokens(batch, 1));
  const std::size_t past = b.state(cache).length;
  const std::size_t back = (b.index() / 3) % 4;
  b.crop(cache, back < past ? past - back : 0);
  b.length(cache);
  const std::size_t rows = b.state(cache).length == 0 ? b.batch() : batch;
  b.feed(cache, b.tokens(rows, 1));
  b.crop(cache, b.state(cache).length - 1);
  b.feed(cache, b.tokens(rows, b.size(1, 2)));
  if (b.random.chance(30)) b.crop(cache, 0);
  else b.crop(cache, b.size(1, b.state(cache).length));
  b.feed(cache, b.tokens(b.state(cache).length == 0 ? b.batch() : rows, window + 1));
  b.feed(cache, b.tokens(b.state(cache).rows.size(), 1));
  return b.finish();
}

/// Pads inside the window and across its edge: the window counts columns, hidden ones too.
LawCase padding(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t window = b.size(2, 6), batch = b.batch(), n = window + b.size(1, 3);
  const std::string cache = sliding(b, window, window);
  Rows mask(batch, std::vector<std::int64_t>(n, 1));
  for (auto& row : mask) row = left_padded(b.random.below(n), n);
  mask.front() = left_padded(b.size(1, n - 1), n);
  b.feed(cache, b.tokens(batch, n), {.mask = mask, .positions = Positions::from_mask});
  Rows holes(batch, std::vector<std::int64_t>(3, 1));
  holes.back()[1] = 0;
  b.feed(cache, b.tokens(batch, 3), {.mask = holes, .positions = Positions::from_mask});
  for (int turn = 0; turn < 3; ++turn) b.feed(cache, b.tokens(batch, 1 + b.random.below(2)), {.positions = Positions::from_mask});
  return b.finish();
}

}  // namespace

std::vector<Law> window_laws() {
  return {
      {"window.band", "a sliding cache = one banded full pass, from window 1 to wider than the history", {.oracle = true}, band},
      {"window.chunking", "chunks shorter, equal and longer than the window, before, at and after the wrap", {.same = true}, chunking},
      {"window.crop", "cropping a sliding cache: what is lost stays lost, and nothing else", {.oracle = true}, crop},
      {"window.padding", "padding inside and across the window", {.oracle = true}, padding},
  };
}

}  // namespace kvproof::harness
