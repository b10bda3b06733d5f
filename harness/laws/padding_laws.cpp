#include <algorithm>

#include "harness/laws/builder.hpp"
#include "harness/laws/law_groups.hpp"

namespace kvproof::harness {
namespace {

/// A batch of rows of different lengths beside the same rows alone. Position ids follow from the mask.
struct Batch {
  std::vector<std::vector<std::int64_t>> prompts;  // the real tokens of each row
  Rows input_ids, mask;                            // [B][n], padded
};

enum class Side { left, right, ragged };

/// Bits of one row: `real` visible columns of n, the pads where `side` wants them.
std::vector<std::int64_t> bits(TraceBuilder& b, Side side, std::size_t real, std::size_t n) {
  if (side == Side::left) return left_padded(n - real, n);
  if (side == Side::right) return right_padded(n - real, n);
  std::vector<std::int64_t> row = left_padded(n - real, n);
  for (std::size_t i = n; i > 1; --i) std::swap(row[i - 1], row[b.random.below(i)]);
  return row;
}

Batch padded(TraceBuilder& b, Side side) {
  Batch batch;
  const std::size_t rows = std::max<std::size_t>(2, b.batch()), n = b.size(3, 6);
  for (std::size_t r = 0; r < std::min(rows, b.most_rows()); ++r) {
    const std::size_t real = r == 0 ? n - 1 - b.random.below(n - 1) : b.size(1, n);
    batch.prompts.push_back(b.tokens(real));
    batch.mask.push_back(bits(b, side, real, n));
    std::vector<std::int64_t> row = b.tokens(n);  // any token may stand in a pad
    for (std::size_t c = 0, next = 0; c < n; ++c)
      if (batch.mask.back()[c] != 0) row[c] = batch.prompts.back()[next++];
    batch.input_ids.push_back(std::move(row));
  }
  return batch;
}

/// Decode steps behind a prompt: the same tokens for the batch and for the row alone.
void decode(TraceBuilder& b, const std::string& cache, const Rows& tail) {
  b.feed_in_chunks(cache, tail, {1, tail.front().size() - 2, 1}, {.positions = Positions::from_mask});
}

LawCase batch_equals_rows(const LawContext& context, Side side) {
  TraceBuilder b(context);
  const Batch batch = padded(b, side);
  const std::size_t rows = batch.prompts.size(), n = batch.input_ids.front().size();
  const Rows tail = b.tokens(rows, 4);
  const std::string kind = b.kind(b.index() % 2 == 0 ? "dynamic" : "static");  // a window counts columns, pads included
  const std::string together = b.make(kind, n + 6);
  b.feed_in_chunks(together, batch.input_ids, b.index() % 3 == 0 ? b.cut(n, 3) : std::vector<std::size_t>{n}, {.mask = batch.mask, .positions = Positions::from_mask});
  decode(b, together, tail);
  b.drop(together);
  for (std::size_t r = 0; r < rows; ++r) {
    const std::string alone = b.make(kind, n + 6);
    b.feed(alone, {batch.prompts[r]});
    decode(b, alone, {tail[r]});
    b.drop(alone);
  }
  return b.finish();
}

LawCase left(const LawContext& context) { return batch_equals_rows(context, Side::left); }
LawCase right(const LawContext& context) { return batch_equals_rows(context, Side::right); }
LawCase ragged(const LawContext& context) { return batch_equals_rows(context, Side::ragged); }

/// The same row among other rows, in another order, and in batches of other sizes.
LawCase neighbours(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t n = b.size(2, 5);
  const std::vector<std::int64_t> row = b.tokens(n + 2);
  const auto bits_of_row = left_padded(b.random.below(n), n + 2);
  const std::string kind = b.any_kind();
  const std::size_t window = b.size(2, 8);
  for (std::size_t size = 1; size <= b.most_rows(); ++size) {
    Rows ids = b.tokens(size, n + 2), mask(size, std::vector<std::int64_t>(n + 2, 1));
    for (auto& other : mask) other = left_padded(b.random.below(n), n + 2);
    const std::size_t place = b.random.below(size);
    ids[place] = row;
    mask[place] = bits_of_row;
    const std::string cache = b.make(kind, std::max(n + 2, window), window);
    b.feed_in_chunks(cache, ids, {n, 2}, {.mask = mask, .positions = Positions::from_mask});
    b.drop(cache);
  }
  return b.finish();
}

/// The pad token's id as a real token: nothing but the mask hides.
LawCase pad_id(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t n = b.size(3, 6), batch = b.batch();
  const std::int64_t pad = b.index() % 3 == 0 ? 0 : b.index() % 3 == 1 ? 1 : static_cast<std::int64_t>(b.model().vocab_size) - 1;
  Rows ids = b.tokens(batch, n), mask(batch, std::vector<std::int64_t>(n, 1));
  for (auto& row : ids)
    for (auto& token : row)
      if (b.random.chance(40)) token = pad;
  ids.front()[n - 2] = pad;
  if (b.random.chance(60)) {
    mask.back() = left_padded(1, n);
    ids.back()[0] = pad;
  }
  const std::string cache = b.make(b.any_kind(), 16, b.size(3, 12));
  b.feed(cache, ids, {.mask = mask, .positions = Positions::from_mask});
  b.feed(cache, Rows(batch, {pad}), {.positions = Positions::from_mask});
  b.feed(cache, b.tokens(batch, 2), {.positions = Positions::from_mask});
  return b.finish();
}

}  // namespace

std::vector<Law> padding_laws() {
  return {
      {"padding.left", "each row of a left-padded batch equals the row alone, at prefill and at every later step", {.same = true}, left},
      {"padding.right", "each row of a right-padded batch equals the row alone, at prefill and at every later step", {.same = true}, right},
      {"padding.ragged", "each row of a batch with pads anywhere equals the row alone, chunked or not", {.same = true}, ragged},
      {"padding.neighbours", "who shares the batch, and in which order, does not matter", {.same = true}, neighbours},
      {"padding.pad_id", "the pad token id may occur as a real token", {.oracle = true}, pad_id},
  };
}

}  // namespace kvproof::harness
