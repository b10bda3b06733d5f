#include "harness/laws/walk.hpp"

#include <algorithm>
#include <array>

namespace kvproof::harness {
namespace {

/// The caches that live now, and the moves on them.
class Walk {
 public:
  Walk(TraceBuilder& b, unsigned read_only) : b_(b), read_only_(read_only) { make(); }

  void step() {
    if (live_.empty()) return make();
    const std::string cache = live_[b_.random.below(live_.size())];
    const std::uint64_t dice = b_.random.below(100);
    if (dice < 55) return feed(cache);
    if (dice < 62) return make();
    if (dice < 69) return copy(cache);
    if (dice < 78) return crop(cache);
    if (dice < 86) return gather(cache);
    if (dice < 89 && b_.can("reset")) return void(b_.add(Reset{cache}));
    if (dice < 93 && b_.can("save") && b_.can("load")) return save_and_load(cache);
    if (dice < 96) return drop(cache);
    const std::size_t columns = b_.size(1, 5), rows = b_.batch();
    b_.full_pass(b_.tokens(rows, columns), {.positions = Positions::random});
  }

 private:
  void make() {
    if (live_.size() >= 4) return;
    constexpr std::array<const char*, 3> kKinds = {"dynamic", "static", "static_sliding_window"};
    const std::size_t window = b_.size(1, 8), capacity = b_.size(6, 20);
    live_.push_back(b_.make(b_.kind(kKinds[b_.random.below(3)]), capacity, window));
  }

  void feed(const std::string& cache) {
    const CacheState& held = b_.state(cache);
    const std::size_t batch = held.length != 0 ? held.rows.size() : b_.batch(), columns = b_.random.chance(50) ? 1 : b_.size(2, 6);
    Feed how{.positions = b_.random.chance(40) ? Positions::from_mask : Positions::random, .use_cache = !b_.random.chance(read_only_)};
    if (b_.random.chance(40)) {
      how.mask.emplace(batch, std::vector<std::int64_t>(columns, 1));
      for (auto& row : *how.mask)
        for (auto& bit : row) bit = b_.random.chance(25) ? 0 : 1;
    }
    if (b_.random.chance(15)) how.logits = "last";
    b_.feed(cache, b_.tokens(batch, columns), how);
  }

  void copy(const std::string& cache) {
    if (live_.size() < 4 && b_.can("clone")) live_.push_back(b_.clone(cache));
  }

  void crop(const std::string& cache) {
    if (b_.can("crop")) b_.crop(cache, b_.size(0, b_.state(cache).length));
  }

  void gather(const std::string& cache) {
    const CacheState& held = b_.state(cache);
    if (held.rows.empty() || !b_.can("gather")) return;
    std::vector<std::int64_t> rows(held.fixed_batch() ? held.rows.size() : b_.batch());
    for (auto& row : rows) row = static_cast<std::int64_t>(b_.random.below(held.rows.size()));
    b_.add(Gather{cache, rows});
  }

  void save_and_load(const std::string& cache) {
    b_.add(Save{cache, "s"});
    b_.add(Load{live_[b_.random.below(live_.size())], "s"});
  }

  void drop(const std::string& cache) {
    if (!b_.can("drop")) return;
    b_.drop(cache);
    std::erase(live_, cache);
  }

  TraceBuilder& b_;
  const unsigned read_only_;
  std::vector<std::string> live_;
};

}  // namespace

void random_walk(TraceBuilder& b, std::size_t steps, unsigned read_only) {
  Walk walk(b, read_only);
  for (std::size_t i = 0; i < steps; ++i) walk.step();
}

}  // namespace kvproof::harness
