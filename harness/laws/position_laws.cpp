#include "harness/laws/builder.hpp"
#include "harness/laws/law_groups.hpp"

namespace kvproof::harness {
namespace {

/// Absent positions after each op that could have moved a cursor.
LawCase by_default(const LawContext& context) {
  TraceBuilder b(context);
  std::size_t batch = b.batch();
  const std::string cache = b.make(b.any_kind(), 24, 24);
  const auto step = [&](const std::string& name, std::size_t columns) { b.feed(name, b.tokens(batch, columns)); };
  step(cache, b.size(2, 5));
  step(cache, 1);
  switch ((b.index() / 3) % 6) {
    case 0: b.crop(cache, b.size(1, b.state(cache).length - 1)); break;
    case 1: b.add(Gather{cache, std::vector<std::int64_t>(batch, 0)}); break;
    case 2: step(b.clone(cache), 2); break;
    case 3: b.add(Reset{cache}); batch = b.batch(); break;
    case 4:
      b.add(Save{cache, "s"});
      step(cache, 2);
      b.add(Load{cache, "s"});
      break;
    default: step(cache, 3); b.crop(cache, 0); batch = b.batch();
  }
  step(cache, 2);
  step(cache, 1);
  return b.finish();
}

LawCase by_caller(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t batch = b.batch();
  const std::string cache = b.make(b.any_kind(), 20, b.size(3, 20));
  for (const std::size_t columns : {b.size(2, 4), std::size_t{1}, b.size(2, 3), std::size_t{1}}) {
    const Positions positions = b.random.chance(75) ? Positions::random : Positions::absent;
    b.feed(cache, b.tokens(batch, columns), {.positions = positions});
  }
  b.full_pass(b.tokens(batch, 4), {.positions = Positions::random, .use_cache = b.index() % 2 == 0});  // which is ignored
  return b.finish();
}

/// The same tokens at other positions: other logits. Blind models and engines that drop positions fail.
LawCase matters(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t n = b.size(2, 4);
  const Rows ids = b.tokens(1, n);
  const std::string kind = b.any_kind();
  for (std::int64_t shift = 0; shift < 3; ++shift) {
    const std::string cache = b.make(kind, 8, 8);
    Forward call = b.forward_call(cache, ids);
    call.position_ids.emplace(1);
    for (std::size_t c = 0; c < n; ++c) call.position_ids->front().push_back(static_cast<std::int64_t>(c) + 2 * shift);
    b.add(call);
    b.drop(cache);
  }
  return b.finish();
}

LawCase refused(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t n = b.size(2, 4), batch = b.batch(), fresh = b.size(1, 3);
  const std::string cache = b.make(b.any_kind(), 60, b.size(3, 8));
  b.feed(cache, b.tokens(batch, n));
  Forward call = b.forward_call(cache, b.tokens(batch, fresh), {.positions = Positions::random});
  Rows& positions = *call.position_ids;
  auto& row = positions[b.random.below(batch)];
  switch (b.index() % 9) {
    case 0: row.push_back(0); break;
    case 1: row.pop_back(); break;
    case 2: row.back() = -1; break;
    case 3: row.front() = static_cast<std::int64_t>(b.model().n_positions); break;
    case 4: for (auto& each : positions) each.push_back(0); break;
    case 5: for (auto& each : positions) each.assign(fresh == 1 ? 2 : 1, 3); break;  // one for all, or two for one
    case 6: positions.pop_back(); break;
    case 7: positions.push_back(positions.back()); break;
    default: call = b.forward_call(cache, b.tokens(batch, b.model().n_positions - n + 1));
  }
  b.add(call);
  b.feed(cache, b.tokens(batch, 2));
  return b.finish();
}

}  // namespace

std::vector<Law> position_laws() {
  return {
      {"position.default", "absent = P, P+1, …, after forward, crop, gather, clone, reset and load", {.oracle = true}, by_default},
      {"position.explicit", "any positions in range: the logits of those positions", {.oracle = true}, by_caller},
      {"position.matters", "other positions give other logits", {.differ = true}, matters},
      {"position.refused", "shape, range, context length", {.oracle = true}, refused},
  };
}

}  // namespace kvproof::harness
