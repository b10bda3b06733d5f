#include <algorithm>

#include "harness/laws/builder.hpp"
#include "harness/laws/law_groups.hpp"
#include "harness/laws/misuse.hpp"
#include "harness/laws/walk.hpp"

namespace kvproof::harness {
namespace {

/// A cache with some columns, padded on the left half of the time.
std::string warm(TraceBuilder& b, std::size_t batch, std::size_t columns, const std::string& kind, const std::string& model = "main") {
  const std::string cache = b.make(kind, 24, b.size(3, 8), model);
  Feed how{.positions = Positions::from_mask};
  if (b.random.chance(50)) {
    how.mask.emplace();
    for (std::size_t r = 0; r < batch; ++r) how.mask->push_back(left_padded(b.random.below(columns), columns));
  }
  b.feed(cache, b.tokens(batch, columns, model), how);
  return cache;
}

void step(TraceBuilder& b, const std::string& cache, std::size_t columns, const std::string& model = "main") {
  const CacheState& held = b.state(cache);
  const std::size_t batch = held.length != 0 ? held.rows.size() : b.batch();
  b.feed(cache, b.tokens(batch, columns, model), {.positions = Positions::from_mask});
}

/// Both branches write, and only then the first is asked again: the third step is what shows shared storage. Each branch is
/// also played on a cache of its own, which has never met the other.
LawCase clones(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t batch = b.batch(), n = b.size(2, 5), window = b.size(3, 8);
  const Rows prefix = b.tokens(batch, n), x = b.tokens(batch, b.size(1, 2)), y = b.tokens(batch, b.size(1, 2)), z = b.tokens(batch, 1);
  const std::string kind = b.any_kind();
  const std::string original = b.make(kind, 16, window);
  b.feed(original, prefix);
  const std::string branch = b.clone(original);
  b.feed(branch, x);
  b.feed(original, y);
  b.feed(branch, z);
  b.feed(original, z);
  b.read_all(branch);
  b.read_all(original);
  b.drop(branch);
  b.drop(original);
  for (const Rows& second : {x, y}) {
    const std::string alone = b.make(kind, 16, window);
    b.feed(alone, prefix);
    b.feed(alone, second);
    b.feed(alone, z);
    b.drop(alone);
  }
  return b.finish();
}

LawCase clone_chain(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t batch = b.batch();
  std::vector<std::string> chain{warm(b, batch, b.size(2, 4), b.any_kind())};
  for (int link = 0; link < 2; ++link) {
    chain.push_back(b.clone(chain.back()));
    step(b, chain[b.random.below(chain.size())], 1);
  }
  const std::string victim = chain[b.random.below(chain.size())];
  switch ((b.index() / 3) % 4) {
    case 0: b.drop(victim); std::erase(chain, victim); break;
    case 1: b.add(Reset{victim}); break;
    case 2: b.crop(victim, b.state(victim).length - 1); break;
    default: b.crop(victim, 0);
  }
  for (const std::string& cache : chain) step(b, cache, 1);
  for (const std::string& cache : chain) b.read_all(cache);
  return b.finish();
}

LawCase interleaved(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t batch = b.batch();
  const std::string kind = b.any_kind();
  std::vector<std::string> caches{warm(b, batch, 3, kind)};
  const bool equal = b.index() % 2 == 0;
  const std::size_t length = equal ? 3 : b.size(1, 5), rows = equal ? batch : b.batch();
  caches.push_back(warm(b, rows, length, equal ? kind : b.kind("dynamic")));
  for (int turn = 0; turn < 5; ++turn) {
    const std::string& cache = caches[b.random.below(caches.size())];
    step(b, cache, b.size(1, 2));
  }
  for (const std::string& cache : caches) step(b, cache, 1);
  return b.finish();
}

/// Each case one kind of refusal, on caches that hold something; what they hold is probed after it.
LawCase refusal(const LawContext& context) {
  TraceBuilder b(context);
  misuse(b, static_cast<Code>(b.index() % kCodeCount));
  return b.finish();
}

/// Read-only forwards between the steps of two caches: nothing changes, neither lengths nor contents nor what is hidden. The other
/// laws ask a clone instead, so that an engine without read-only forwards breaks this law alone; every fourth case is a walk.
LawCase read_only(const LawContext& context) {
  TraceBuilder b(context);
  if (b.index() % 4 == 3) {
    random_walk(b, 14, 25);
    return b.finish(true);
  }
  const std::size_t batch = b.batch();
  const std::string cache = warm(b, batch, b.size(2, 5), b.any_kind());
  for (int turn = 0; turn < 3; ++turn) {
    b.read_all(cache);
    Forward asked = b.forward_call(cache, b.tokens(batch, b.size(1, 6)), {.positions = Positions::random, .use_cache = false, .say_mask = true});
    if (turn == 1) (*asked.attention_mask)[0][b.random.below(b.state(cache).length)] = 0;  // hidden for that call only
    b.add(asked);
    b.length(cache);
    const std::size_t columns = b.size(1, 4), rows = b.batch();
    b.full_pass(b.tokens(rows, columns));
    b.read_all(cache);
    step(b, cache, 1);
  }
  const std::string empty = b.make(b.any_kind(), 8, 4);
  b.feed(empty, b.tokens(b.batch(), 3), {.use_cache = false});
  b.length(empty);
  b.feed(empty, b.tokens(b.batch(), 2));  // read-only leaves no batch size behind
  return b.finish(true);
}

/// Calls with every array given: the runner compares the caller's arrays before and after.
LawCase caller(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t batch = b.batch(), n = b.size(2, 4);
  const std::string cache = b.make(b.any_kind(), 16, b.size(2, 8));
  Rows mask(batch, std::vector<std::int64_t>(n, 1));
  mask.front() = left_padded(b.random.below(n), n);
  b.feed(cache, b.tokens(batch, n), {.mask = mask, .positions = Positions::from_mask, .say_mask = true});
  b.feed(cache, b.tokens(batch, b.size(1, 3)), {.positions = Positions::from_mask, .logits = "last", .say_mask = true});
  b.feed(cache, b.tokens(batch, 1), {.positions = Positions::random, .use_cache = false, .say_mask = true});
  b.full_pass(b.tokens(batch, n), {.mask = mask, .positions = Positions::from_mask, .say_mask = true});
  return b.finish();
}

LawCase reset(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t first = b.batch(), n = b.size(3, 5);
  const std::string cache = b.make(b.any_kind(), 16, b.size(3, 8));
  Rows mask(first, std::vector<std::int64_t>(n, 1));
  mask.front() = left_padded(b.size(1, n - 1), n);
  b.feed(cache, b.tokens(first, n), {.mask = mask, .positions = Positions::from_mask});
  b.feed(cache, b.tokens(first, 2), {.positions = Positions::from_mask});
  switch ((b.index() / 3) % 3) {
    case 0: b.add(Reset{cache}); break;
    case 1: b.crop(cache, 0); break;
    default:
      b.drop(cache);
      b.add(NewCache{cache, b.kind("dynamic"), std::nullopt, std::nullopt, std::nullopt});
  }
  b.length(cache);
  const std::size_t second = 1 + first % b.most_rows(), m = b.size(2, 4);
  b.feed(cache, b.tokens(second, m));
  b.feed(cache, b.tokens(second, 1), {.mask = Rows(second, {1})});
  b.feed(cache, b.tokens(second, 2));
  return b.finish();
}

LawCase saved(const LawContext& context) {
  TraceBuilder b(context);
  const std::size_t length = b.size(2, 5), batch = b.batch();
  const std::string cache = warm(b, batch, length, b.any_kind());
  b.add(Save{cache, "s"});
  step(b, cache, 2);
  switch ((b.index() / 3) % 5) {
    case 0: b.crop(cache, 0); step(b, cache, 3); break;             // another batch lives where the saved one did
    case 1: b.add(Reset{cache}); step(b, cache, 2); break;
    case 2: b.drop(cache); break;                                   // load creates it again
    case 3: b.add(Save{cache, "t"}); b.add(Load{cache, "t"}); break;
    default: b.add(Gather{cache, std::vector<std::int64_t>(b.state(cache).rows.size(), 0)}); step(b, cache, 1);
  }
  b.add(Load{cache, "s"});
  b.length(cache);
  step(b, cache, 1);
  b.add(Load{"other", "s"});
  step(b, "other", 2);
  step(b, cache, 1);
  if ((b.index() / 3) % 5 == 3) {
    b.add(Save{cache, "s"});                                        // save overwrites
    b.add(Load{"other", "s"});
    step(b, "other", 1);
  }
  return b.finish();
}

/// Two lanes share a model; each has its own cache, and their steps start together.
LawCase threads(const LawContext& context) {
  TraceBuilder b(context);
  const std::string kinds[] = {b.any_kind(), b.kind("dynamic")};
  const std::size_t lanes = 2 + b.index() % 2;
  std::vector<std::size_t> batch;
  const auto name = [](std::size_t lane) { return "lane" + std::to_string(lane); };
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    batch.push_back(b.batch());
    NewCache call{name(lane), kinds[lane % 2], std::nullopt, std::nullopt, std::nullopt};
    if (call.kind != "dynamic") call.capacity = 24;
    if (call.kind == "static_sliding_window") call.window = 5;
    b.add(call, lane);
  }
  for (int turn = 0; turn < 5; ++turn)
    for (std::size_t lane = 0; lane < lanes; ++lane)
      b.add(b.forward_call(name(lane), b.tokens(batch[lane], b.size(1, 4))), lane);
  return b.finish();
}

LawCase two_models(const LawContext& context) {
  TraceBuilder b(context);
  const std::string kind = b.any_kind();
  const std::size_t batch = b.batch();
  const std::string ours = warm(b, batch, 3, kind), theirs = warm(b, batch, 3, kind, "other");
  step(b, ours, 1);
  step(b, theirs, 1, "other");
  Forward wrong = b.forward_call(ours, {b.tokens(1)});
  wrong.input_ids.assign(batch, {0});
  wrong.attention_mask.reset();
  wrong.model = "other";
  b.add(wrong);
  step(b, theirs, 2, "other");
  step(b, ours, 2);
  return b.finish();
}

}  // namespace

std::vector<Law> isolation_laws() {
  return {
      {"isolation.clone", "clone, write both, read the first again: neither branch sees the other", {.same = true}, clones},
      {"isolation.clone_chain", "clones of clones, dropped, cropped and reset in any order", {.oracle = true, .same = true}, clone_chain},
      {"isolation.interleaved", "several caches of equal and of different shapes, used in turn", {.oracle = true, .same = true}, interleaved},
      {"isolation.refusal", "after each kind of refusal every live cache answers as before", {.oracle = true, .same = true}, refusal},
      {"isolation.read_only", "use_cache: false, and cache null, change nothing", {.oracle = true, .same = true}, read_only},
      {"isolation.caller", "the caller's arrays are never written", {.oracle = true}, caller},
      {"isolation.reset", "reset, drop and reuse, with another batch and other padding, equals a new cache", {.oracle = true}, reset},
      {"isolation.saved", "a saved cache survives everything done to the live one, and loads over anything", {.oracle = true, .same = true}, saved},
      {"isolation.threads", "lanes on threads, one model: each answers as if alone", {.oracle = true}, threads},
      {"isolation.models", "two models side by side; a cache of one given to the other is refused", {.oracle = true}, two_models, "main other"},
  };
}

}  // namespace kvproof::harness
