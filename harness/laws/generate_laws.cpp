#include <algorithm>

#include "harness/laws/builder.hpp"
#include "harness/laws/law_groups.hpp"

namespace kvproof::harness {
namespace {

Generate prompt(TraceBuilder& b, bool ragged) {
  Generate call;
  const std::size_t batch = b.batch(), n = b.size(2, 5);
  call.input_ids = b.tokens(batch, n);
  call.max_new_tokens = b.random.between(1, 6);
  if (ragged) {
    call.attention_mask.emplace();
    for (std::size_t r = 0; r < batch; ++r) call.attention_mask->push_back(left_padded(b.random.below(n), n));
  }
  if (b.random.chance(40)) call.eos_token_id = b.tokens(1).front();
  return call;
}

void with_kind(TraceBuilder& b, Generate& call, const std::string& kind) {
  const auto needed = static_cast<std::int64_t>(call.input_ids.front().size()) + call.max_new_tokens - 1;
  call.kind = b.kind(kind);
  if (call.kind != "dynamic") call.capacity = needed + b.random.between(0, 3);
  if (call.kind == "static_sliding_window") call.window = b.random.between(2, 6);
}

LawCase greedy(const LawContext& context) {
  TraceBuilder b(context);
  Generate call = prompt(b, b.index() % 2 == 0);
  with_kind(b, call, b.any_kind());
  b.add(call);
  if (call.capacity && *call.kind == "static") {
    call.capacity = static_cast<std::int64_t>(call.input_ids.front().size()) + call.max_new_tokens - 2;
    if (*call.capacity > 0) b.add(call);  // one column too few: refused before the first token
  }
  return b.finish();
}

LawCase caches(const LawContext& context) {
  TraceBuilder b(context);
  Generate call = prompt(b, b.index() % 2 == 0);
  b.add(call);
  for (const char* kind : {"dynamic", "static"}) {
    call.capacity.reset();
    with_kind(b, call, kind);
    b.add(call);
  }
  return b.finish();
}

}  // namespace

std::vector<Law> generate_laws() {
  return {
      {"generate.greedy", "greedy ids are justified by the oracle, padded or not, with eos and without", {.oracle = true}, greedy},
      {"generate.caches", "dynamic, static and no cache agree except on ties", {.oracle = true, .same = true}, caches},
  };
}

}  // namespace kvproof::harness
