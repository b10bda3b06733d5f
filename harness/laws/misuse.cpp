#include "harness/laws/misuse.hpp"

#include <array>

namespace kvproof::harness {
namespace {

/// The two caches a misuse happens beside: `cache` is static or sliding where the code wants it.
struct Scene {
  TraceBuilder& b;
  std::string cache, other;
  std::size_t batch = 0;

  [[nodiscard]] Forward forward(std::size_t columns = 1) const {
    return b.forward_call(cache, b.tokens(batch, columns), {.positions = Positions::from_mask, .say_mask = true});
  }
  template <typename Spoil>
  void refused_forward(const Spoil& spoil, std::size_t columns = 1) const {
    Forward call = forward(columns);
    spoil(call);
    b.add(call);
  }
};

/// None, one behind the last, one before the first, or more than a static cache may hold.
std::vector<std::int64_t> rows_out_of_range(const Scene& s) {
  const std::uint64_t way = s.b.random.below(s.b.state(s.cache).fixed_batch() ? 4 : 3);
  if (way == 0) return {};
  if (way == 3) return std::vector<std::int64_t>(s.batch + 1, 0);
  std::vector<std::int64_t> rows(s.batch, 0);
  rows.back() = way == 1 ? static_cast<std::int64_t>(s.batch) : -1;
  return rows;
}

void break_rule(const Scene& s, Code code) {
  const auto last_row = s.batch - 1;
  switch (code) {
    case Code::unknown_cache: return void(s.b.add(Crop{"nobody", 0}));
    case Code::cache_exists: return void(s.b.add(Clone{s.other, s.cache}));
    case Code::name_unknown: return void(s.b.add(Load{s.cache, "nothing"}));
    case Code::bad_argument:
      if (s.b.random.chance(50)) return s.refused_forward([](Forward& call) { call.logits = "some"; });
      return void(s.b.add(NewCache{"bad", s.b.kind("static"), 0, std::nullopt, std::nullopt}));
    case Code::layer_range: return void(s.b.add(Read{s.cache, s.b.random.chance(50) ? -1 : static_cast<std::int64_t>(s.b.model().n_layer)}));
    case Code::empty_input: return s.refused_forward([&](Forward& call) { call.input_ids.assign(s.b.random.below(2) * s.batch, {}); });
    case Code::batch_mismatch:
      return s.refused_forward([&](Forward& call) {
        switch (s.b.random.below(4)) {
          case 0: call.input_ids[last_row].push_back(0); break;
          case 1: call.attention_mask->pop_back(); break;
          case 2: call.position_ids->pop_back(); break;
          default: call.input_ids.push_back(call.input_ids.front());
        }
      });
    case Code::token_range:  // the last row: an engine that checks as it goes has fed the others
      return s.refused_forward([&](Forward& call) { call.input_ids[last_row].back() = s.b.random.chance(50) ? -1 : static_cast<std::int64_t>(s.b.model().vocab_size); }, 2);
    case Code::mask_length: return s.refused_forward([](Forward& call) { call.attention_mask->back().pop_back(); });
    case Code::mask_value: return s.refused_forward([&](Forward& call) { call.attention_mask->back().back() = s.b.random.chance(50) ? 2 : -1; });
    case Code::mask_revival: return s.refused_forward([](Forward& call) { call.attention_mask->front()[0] = 1; });
    case Code::position_shape: return s.refused_forward([](Forward& call) { call.position_ids->back().push_back(0); });
    case Code::position_range: return s.refused_forward([&](Forward& call) { call.position_ids->back().back() = static_cast<std::int64_t>(s.b.model().n_positions); });
    case Code::context_length:
      return s.refused_forward([](Forward& call) { call.position_ids.reset(); }, s.b.model().n_positions - s.b.state(s.cache).length + 1);
    case Code::capacity: return s.refused_forward([](Forward&) {}, *s.b.state(s.cache).capacity - s.b.state(s.cache).length + 1);
    case Code::crop_range:
      return void(s.b.add(Crop{s.cache, s.b.random.chance(50) ? -1 : static_cast<std::int64_t>(s.b.state(s.cache).length) + 1}));
    case Code::crop_evicted: return void(s.b.add(Crop{s.cache, static_cast<std::int64_t>(s.b.state(s.cache).length) - 2}));
    case Code::row_range:
      return void(s.b.add(Gather{s.cache, rows_out_of_range(s)}));
    case Code::model_mismatch:
    case Code::other: return;  // isolation.models breaks the one; the other is no code of the contract
  }
}

std::string kind_for(TraceBuilder& b, Code code) {
  if (code == Code::capacity) return "static";
  if (code == Code::crop_evicted) return "static_sliding_window";
  return code == Code::context_length ? b.kind("dynamic") : b.kind(std::array{"dynamic", "static", "static_sliding_window"}[(b.index() / kCodeCount) % 3]);
}

}  // namespace

void misuse(TraceBuilder& b, Code code) {
  Scene scene{b, {}, {}, b.batch()};
  const std::size_t n = b.size(6, 7);
  scene.other = b.make(b.kind("dynamic"), 16, 6);
  b.feed(scene.other, b.tokens(scene.batch, 2));
  scene.cache = b.make(kind_for(b, code), 12, 4);
  Rows mask(scene.batch, std::vector<std::int64_t>(n, 1));
  mask.front()[0] = 0;
  b.feed(scene.cache, b.tokens(scene.batch, n), {.mask = mask, .positions = Positions::from_mask});
  break_rule(scene, code);
  b.feed(scene.cache, b.tokens(scene.batch, 1), {.positions = Positions::from_mask});
  b.feed(scene.other, b.tokens(scene.batch, 2));
}

}  // namespace kvproof::harness
