#include <algorithm>
#include <numeric>

#include "harness/laws/builder.hpp"
#include "harness/laws/law_groups.hpp"

namespace kvproof::harness {
namespace {

/// The same calls on a dynamic cache and on static ones of several capacities, the exact fit among them.
LawCase fixed(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t batch = b.batch(), n = b.size(4, 10);
  const Rows ids = b.tokens(batch, n);
  Rows mask(batch, std::vector<std::int64_t>(n, 1));
  if (b.random.chance(50)) mask.front() = left_padded(b.size(1, n - 1), n);
  const auto chunks = b.cut(n, 4);
  for (const std::size_t spare : {std::size_t{0}, std::size_t{1}, b.size(2, 20)}) {
    const std::string cache = b.make("static", n + spare);
    b.feed_in_chunks(cache, ids, chunks, {.mask = mask, .positions = Positions::from_mask});
    b.drop(cache);
  }
  const std::string cache = b.make(b.kind("dynamic"), n);
  b.feed_in_chunks(cache, ids, chunks, {.mask = mask, .positions = Positions::from_mask});
  return b.finish();
}

/// Slots that hold no column are full of NaN: before the first append, behind the last, after crop and reset.
LawCase slots(const LawContext& context) {
  TraceBuilder b(context);
  std::size_t batch = b.batch();
  const std::string cache = b.make(b.any_kind(), 24, b.size(3, 10));
  const auto step = [&](std::size_t columns) { b.feed(cache, b.tokens(batch, columns)); };
  step(b.size(2, 5));
  step(1);
  step(2);
  switch ((b.index() / 3) % 3) {
    case 0: b.crop(cache, b.state(cache).length - 1); break;
    case 1: b.add(Gather{cache, std::vector<std::int64_t>(batch, static_cast<std::int64_t>(batch) - 1)}); break;
    default: b.add(Reset{cache}); batch = b.batch();
  }
  step(1);
  step(3);
  b.read_all(cache);
  return b.finish(true);
}

/// Where a crop may go wrong, one place a case; after the first append of n columns and the second up to `past`.
struct CropCase {
  std::size_t n, last, length;
  bool padded;
};

CropCase crop_case(TraceBuilder& b) {
  CropCase made{b.size(3, 6), b.size(2, 3), 0, b.index() % 2 == 1};
  if (b.random.chance(30)) made.last = 1;
  const std::size_t place = (b.index() / 3) % 8;
  if (place == 6) made.last = 2;  // the first column of the last append must not be all of it
  const std::size_t past = made.n + made.last;
  const std::size_t lengths[] = {0, 1, past - 1, past, made.n - 1, made.n, made.n + 1, b.size(1, past)};
  made.length = lengths[place];
  return made;
}

LawCase crop(const LawContext& context) {
  TraceBuilder b(context);
  std::size_t batch = b.batch();
  const CropCase made = crop_case(b);
  const std::string cache = b.make(b.any_kind(), 24, 12);  // a window wider than the history: rule 5 has a law of its own
  Rows mask(batch, std::vector<std::int64_t>(made.n, 1));
  if (made.padded) mask.front() = left_padded(b.size(made.length == 1 ? 2 : 1, made.n - 1), made.n);  // to 1: in the middle of the pads
  b.feed(cache, b.tokens(batch, made.n), {.mask = mask, .positions = Positions::from_mask});
  b.feed(cache, b.tokens(batch, made.last), {.positions = Positions::from_mask});
  b.crop(cache, made.length);
  b.length(cache);
  if (b.state(cache).length == 0) batch = b.batch();
  const Positions positions = made.padded ? Positions::from_mask : Positions::absent;
  b.feed(cache, b.tokens(batch, 1), {.positions = positions});
  b.crop(cache, b.state(cache).length - 1);  // once more: a cursor that stayed shows now
  b.feed(cache, b.tokens(batch, 3), {.positions = positions});
  b.feed(cache, b.tokens(batch, 1), {.positions = positions});
  b.read_all(cache);
  return b.finish();
}

/// Row lists: swaps, repeats, identity, rotation, select and repeat (another batch size only on a dynamic cache).
std::vector<std::int64_t> rows_to_keep(TraceBuilder& b, std::size_t batch, bool fixed_batch) {
  std::vector<std::int64_t> rows(batch);
  std::iota(rows.begin(), rows.end(), 0);
  switch ((b.index() / 3) % 6) {
    case 0: std::ranges::reverse(rows); break;
    case 1: std::ranges::fill(rows, static_cast<std::int64_t>(batch) - 1); break;
    case 2: std::ranges::fill(rows, 0); break;
    case 3: break;
    case 4: std::ranges::rotate(rows, rows.begin() + 1); break;
    default: for (auto& row : rows) row = static_cast<std::int64_t>(b.random.below(batch));
  }
  if (!fixed_batch && b.random.chance(50)) rows.resize(b.size(1, b.most_rows()), rows.back());
  return rows;
}

LawCase gather(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t n_head = b.model().n_head, n = b.size(2, 5);
  const std::size_t batch = b.index() % 2 == 0 ? std::clamp<std::size_t>(n_head, 1, b.most_rows()) : std::max<std::size_t>(2, b.batch());
  const std::string cache = b.make(b.any_kind(), 20, b.size(3, 12));
  Rows mask(batch, std::vector<std::int64_t>(n, 1));
  for (auto& row : mask) row = left_padded(b.random.below(n), n);
  b.feed(cache, b.tokens(batch, n), {.mask = mask, .positions = Positions::from_mask});
  b.read_all(cache);
  for (int turn = 0; turn < 2; ++turn) {
    b.add(Gather{cache, rows_to_keep(b, b.state(cache).rows.size(), b.state(cache).fixed_batch())});
    b.read_all(cache);
    b.feed(cache, b.tokens(b.state(cache).rows.size(), b.size(1, 3)), {.positions = turn == 0 ? Positions::from_mask : Positions::absent});
  }
  b.feed(cache, b.tokens(b.state(cache).rows.size(), 1));
  return b.finish();
}

}  // namespace

std::vector<Law> cache_laws() {
  return {
      {"cache.static", "static = dynamic, whatever the capacity", {.same = true}, fixed},
      {"cache.slots", "unused slots never matter", {.oracle = true}, slots},
      {"cache.crop", "crop then continue = never fed", {.oracle = true}, crop},
      {"cache.gather", "rows move with their keys, values, masks and positions", {.oracle = true, .same = true}, gather},
  };
}

}  // namespace kvproof::harness
