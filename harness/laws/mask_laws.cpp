#include "harness/laws/builder.hpp"
#include "harness/laws/law_groups.hpp"

namespace kvproof::harness {
namespace {

/// The same rows with every token from `column` on changed.
Rows changed_from(TraceBuilder& b, Rows ids, std::size_t column) {
  for (auto& row : ids)
    for (std::size_t c = column; c < row.size(); ++c) row[c] = (row[c] + b.random.between(1, 5)) % static_cast<std::int64_t>(b.model().vocab_size);
  return ids;
}

LawCase causal(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t n = b.size(2, 7), batch = b.batch();
  const Rows ids = b.tokens(batch, n);
  const std::string kind = b.any_kind();
  const std::size_t window = b.size(1, 8);
  for (const Rows& input_ids : {ids, changed_from(b, ids, n - 1), changed_from(b, ids, b.size(1, n - 1))}) {
    const std::string cache = b.make(kind, 9, window);
    b.feed(cache, input_ids);
    b.drop(cache);
    b.full_pass(input_ids);
  }
  return b.finish();
}

LawCase causal_append(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t past = b.size(1, 5), n = b.size(2, 5), batch = b.batch();
  const Rows prefix = b.tokens(batch, past), chunk = b.tokens(batch, n), more = b.tokens(batch, 2);
  const std::string kind = b.any_kind();
  const std::size_t window = b.size(2, 9);
  for (const Rows& input_ids : {chunk, changed_from(b, chunk, n - 1), changed_from(b, chunk, 1)}) {
    const std::string cache = b.make(kind, 16, window);
    b.feed(cache, prefix);
    b.feed(cache, input_ids);
    b.feed(cache, more);
    b.drop(cache);
  }
  return b.finish();
}

/// Bits with about a third hidden, the first and the last column of the row visible.
Rows holes(TraceBuilder& b, std::size_t batch, std::size_t columns) {
  Rows mask(batch, std::vector<std::int64_t>(columns, 1));
  for (auto& row : mask) {
    for (std::size_t c = 1; c + 1 < columns; ++c) row[c] = b.random.chance(35) ? 0 : 1;
    if (columns > 2) row[1 + b.random.below(columns - 2)] = 0;
  }
  return mask;
}

LawCase hidden(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t n = b.size(3, 7), batch = b.batch();
  const Rows ids = b.tokens(batch, n), tail = b.tokens(batch, 2);
  Rows mask = holes(b, batch, n);
  if (b.index() % 2 == 0) mask.front() = left_padded(b.size(1, n - 1), n);
  Rows others = ids;
  for (std::size_t r = 0; r < batch; ++r)
    for (std::size_t c = 0; c < n; ++c)
      if (mask[r][c] == 0) others[r][c] = (ids[r][c] + 1) % static_cast<std::int64_t>(b.model().vocab_size);
  const std::string kind = b.any_kind();
  const std::size_t window = b.size(2, 9);
  for (const Rows& input_ids : {ids, others}) {
    const std::string cache = b.make(kind, 12, window);
    b.feed(cache, input_ids, {.mask = mask, .positions = Positions::from_mask});
    b.feed(cache, tail, {.positions = Positions::from_mask});
    b.drop(cache);
    b.full_pass(input_ids, {.mask = mask, .use_cache = b.index() % 4 < 2});  // which is ignored
  }
  return b.finish();
}

LawCase interior(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t batch = b.batch(), n = b.size(4, 7), m = b.size(3, 5);
  const std::string cache = b.make(b.any_kind(), 20, b.size(3, 12));
  const Positions positions = b.index() % 2 == 0 ? Positions::from_mask : Positions::absent;
  for (const std::size_t columns : {n, m, std::size_t{1}, std::size_t{3}}) {
    Feed how{.positions = positions};
    if (columns > 2) how.mask = holes(b, batch, columns);
    b.feed(cache, b.tokens(batch, columns), how);
  }
  return b.finish();
}

LawCase carried(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t n = b.size(3, 6), batch = b.batch();
  Rows mask(batch, std::vector<std::int64_t>(n, 1));
  for (std::size_t r = 0; r < batch; ++r) mask[r] = left_padded(r == 0 ? b.size(1, n - 1) : b.random.below(n), n);
  const std::string cache = b.make(b.any_kind(), 20, b.size(4, 16));
  b.feed(cache, b.tokens(batch, n), {.mask = mask, .positions = Positions::from_mask});
  for (int step = 0; step < 4; ++step) b.feed(cache, b.tokens(batch, step == 1 ? 3 : 1), {.positions = Positions::from_mask});
  return b.finish();
}

LawCase hide_past(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t n = b.size(3, 6), batch = b.batch();
  const std::string cache = b.make(b.any_kind(), 20, b.size(4, 12));
  b.feed(cache, b.tokens(batch, n));
  const auto hide = [&](const std::string& where, std::size_t columns) {
    Forward call = b.forward_call(where, b.tokens(batch, columns), {.say_mask = true});
    for (auto& row : *call.attention_mask)
      if (b.random.chance(70)) row[b.random.below(n)] = 0;
    (*call.attention_mask)[0][b.random.below(n)] = 0;
    b.add(call);
  };
  if (b.can("clone")) {  // hidden there, and not here
    const std::string copy = b.clone(cache);
    hide(copy, b.size(1, 2));
    b.drop(copy);
  }
  b.feed(cache, b.tokens(batch, 1));
  hide(cache, b.size(1, 3));  // hidden from now on
  b.feed(cache, b.tokens(batch, 2));
  hide(cache, 1);
  b.feed(cache, b.tokens(batch, 1));
  return b.finish();
}

LawCase absent(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t batch = b.batch();
  const std::string kind = b.any_kind();
  const Rows first = b.tokens(batch, b.size(1, 4)), second = b.tokens(batch, b.size(1, 4)), third = b.tokens(batch, 1);
  const std::size_t window = b.size(2, 8);
  for (const bool say : {false, true, b.random.chance(50)}) {
    const std::string cache = b.make(kind, 12, window);
    b.feed(cache, first, {.say_mask = say});
    b.feed(cache, second, {.say_mask = !say});
    b.feed(cache, third, {.say_mask = say});
    b.drop(cache);
    b.full_pass(first, {.say_mask = say});
  }
  return b.finish();
}

LawCase refused(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t n = b.size(2, 4), batch = b.batch(), fresh = b.size(1, 2);
  const std::string cache = b.make(b.any_kind(), 16, b.size(3, 8));
  Rows mask(batch, std::vector<std::int64_t>(n, 1));
  mask.back() = left_padded(1, n);
  b.feed(cache, b.tokens(batch, n), {.mask = mask, .positions = Positions::from_mask});
  const auto spoilt = [&](const auto& spoil) {
    Forward call = b.forward_call(cache, b.tokens(batch, fresh), {.positions = Positions::from_mask, .say_mask = true});
    spoil(*call.attention_mask);
    b.add(call);
  };
  switch (b.index() % 9) {
    case 0: spoilt([&](Rows& m) { for (auto& row : m) row.erase(row.begin()); }); break;                   // one short
    case 1: spoilt([&](Rows& m) { for (auto& row : m) row.push_back(1); }); break;                         // one long
    case 2: spoilt([&](Rows& m) { for (auto& row : m) row.erase(row.begin(), row.end() - static_cast<std::ptrdiff_t>(fresh)); }); break;  // only the new part
    case 3: spoilt([&](Rows& m) { m[b.random.below(batch)].back() = 2; }); break;
    case 4: spoilt([&](Rows& m) { m[b.random.below(batch)][b.random.below(n)] = -1; }); break;
    case 5: spoilt([&](Rows& m) { m.back()[0] = 1; }); break;                                              // revival
    case 6: spoilt([&](Rows& m) { m.pop_back(); }); break;                                                 // a row short
    case 7: spoilt([&](Rows& m) { m.push_back(m.back()); }); break;                                        // a row too many
    default: {                                                                                             // revival by an absent mask
      Forward call = b.forward_call(cache, b.tokens(batch, fresh));
      call.attention_mask.reset();
      b.add(call);
    }
  }
  spoilt([&](Rows& m) { m.front().pop_back(); });  // one row only
  b.feed(cache, b.tokens(batch, 2), {.positions = Positions::from_mask});
  return b.finish();
}

}  // namespace

std::vector<Law> mask_laws() {
  return {
      {"mask.causal", "a later token never moves an earlier row of the same call", {.oracle = true, .same = true}, causal},
      {"mask.causal_append", "the same inside a chunk of two or more appended to a warm cache, every row", {.oracle = true, .same = true}, causal_append},
      {"mask.hidden", "the token id in a hidden column moves nothing visible", {.same = true}, hidden},
      {"mask.holes", "hidden columns between visible ones, at prefill and later", {.oracle = true}, interior},
      {"mask.carried", "what was hidden at prefill stays hidden at every later step", {.oracle = true}, carried},
      {"mask.hide_past", "a past column hidden later is invisible from then on, and only then", {.oracle = true}, hide_past},
      {"mask.absent", "absent = all ones, bit for bit", {.oracle = true, .repeat = true}, absent},
      {"mask.refused", "wrong length, wrong value, revival", {.oracle = true}, refused},
  };
}

}  // namespace kvproof::harness
