#include "harness/laws/simpler_calls.hpp"

namespace kvproof::harness {
namespace {

/// Collects copies of a call with one thing changed.
template <typename T>
class Variants {
 public:
  explicit Variants(const T& call) : call_(call) {}

  void add(const auto& change) {
    T& copy = std::get<T>(variants_.emplace_back(call_));
    change(copy);
    if (copy == call_) variants_.pop_back();
  }
  /// Towards 1: at once, by half, by one.
  void smaller(auto T::*field) {
    if (!(call_.*field) || *(call_.*field) <= 1) return;
    const std::int64_t value = *(call_.*field);
    for (const std::int64_t less : {std::int64_t{1}, value / 2, value - 1}) add([&](T& copy) { copy.*field = less; });
  }
  [[nodiscard]] std::vector<Call> take() { return std::move(variants_); }

 private:
  const T& call_;
  std::vector<Call> variants_;
};

/// dynamic is simpler than static, static than sliding.
template <typename T>
void simpler_kinds(const T& call, Variants<T>& variants) {
  const bool sliding = call.kind == "static_sliding_window";
  if (!sliding && call.kind != "static") return;
  variants.add([](T& copy) {
    copy.kind = "dynamic";
    copy.capacity.reset();
    copy.window.reset();
  });
  if (!sliding) return;
  variants.add([](T& copy) {
    copy.kind = "static";
    copy.window.reset();
  });
}

std::vector<Call> simpler(const NewCache& call) {
  Variants variants(call);
  simpler_kinds(call, variants);
  variants.add([](NewCache& copy) { copy.model.reset(); });
  variants.smaller(&NewCache::capacity);
  variants.smaller(&NewCache::window);
  return variants.take();
}

void fill(std::optional<Rows>& rows, std::int64_t value) {
  if (!rows) return;
  for (auto& row : *rows)
    for (auto& each : row) each = value;
}

std::vector<Call> simpler(const Forward& call) {
  Variants variants(call);
  variants.add([](Forward& copy) { copy.attention_mask.reset(); });
  variants.add([](Forward& copy) { copy.position_ids.reset(); });
  variants.add([](Forward& copy) { copy.logits = "all"; });
  variants.add([](Forward& copy) { copy.use_cache = true; });
  variants.add([](Forward& copy) { copy.model.reset(); });
  variants.add([](Forward& copy) { fill(copy.attention_mask, 1); });
  return variants.take();
}

std::vector<Call> simpler(const Generate& call) {
  Variants variants(call);
  variants.add([](Generate& copy) {
    copy.kind.reset();
    copy.capacity.reset();
    copy.window.reset();
  });
  if (call.kind) simpler_kinds(call, variants);
  variants.add([](Generate& copy) { copy.attention_mask.reset(); });
  variants.add([](Generate& copy) { copy.eos_token_id.reset(); });
  variants.add([](Generate& copy) { copy.model.reset(); });
  variants.smaller(&Generate::capacity);
  variants.smaller(&Generate::window);
  for (const std::int64_t less : {std::int64_t{1}, call.max_new_tokens / 2, call.max_new_tokens - 1})
    if (less >= 1 && less < call.max_new_tokens) variants.add([&](Generate& copy) { copy.max_new_tokens = less; });
  return variants.take();
}

std::vector<Call> simpler(const Read& call) {
  Variants variants(call);
  if (call.layer > 0) variants.add([](Read& copy) { copy.layer = 0; });
  return variants.take();
}

std::vector<Call> simpler(const auto&) { return {}; }

}  // namespace

std::vector<Call> simpler_calls(const Call& call) {
  return std::visit([](const auto& each) { return simpler(each); }, call);
}

}  // namespace kvproof::harness
