#include <algorithm>

#include "engine/session/check.hpp"
#include "engine/session/session.hpp"

namespace kvproof {
namespace {

// The largest logit of a row; the lowest id among equals.
std::int64_t best_id(std::span<const float> row) { return std::ranges::max_element(row) - row.begin(); }

// What has been generated, and what to feed next. With a cache only the newest column is fed; without, the whole history.
class Generation {
 public:
  Generation(const GenerateInput& input, bool cached)
      : input_(input), cached_(cached), mask_(input.attention_mask.value_or(Rows(input.input_ids.size(), std::vector<std::int64_t>(input.input_ids.front().size(), 1)))),
        generated_(input.input_ids.size()), ended_(input.input_ids.size(), false) {
    step_.input_ids = input.input_ids;
    step_.logits = LogitsWanted::last;
  }

  const ForwardInput& next_step() {
    step_.attention_mask = mask_;
    step_.position_ids = positions_from_mask(mask_, step_.input_ids.front().size());
    return step_;
  }

  void take(const Logits& logits) {
    std::vector<std::int64_t> ids(generated_.size());
    for (std::size_t r = 0; r < ids.size(); ++r) ids[r] = next_id(r, std::span(logits.values).subspan(r * logits.vocab_size, logits.vocab_size));
    for (std::size_t r = 0; r < ids.size(); ++r) append(r, ids[r]);
    if (input_.on_token) input_.on_token(ids);
  }

  [[nodiscard]] bool done() const {
    return generated_.front().size() == static_cast<std::size_t>(input_.max_new_tokens) ||
           std::ranges::all_of(ended_, [](bool ended) { return ended; });
  }

  Rows ids() && { return std::move(generated_); }

 private:
  std::int64_t next_id(std::size_t row, std::span<const float> logits) {
    if (ended_[row]) return *input_.eos_token_id;
    const std::int64_t id = best_id(logits);
    ended_[row] = input_.eos_token_id == id;
    return id;
  }

  void append(std::size_t row, std::int64_t id) {
    generated_[row].push_back(id);
    mask_[row].push_back(1);
    if (cached_) step_.input_ids[row].clear();
    step_.input_ids[row].push_back(id);
  }

  const GenerateInput& input_;
  bool cached_;
  Rows mask_;       // [B][columns so far]
  Rows generated_;  // [B][n]
  std::vector<bool> ended_;
  ForwardInput step_;
};

}  // namespace

Rows Session::generate(const GenerateInput& input) const {
  check_generate(model().config(), input);
  std::optional<Cache> cache;
  if (input.cache) cache.emplace(make_cache(*input.cache));
  Generation generation(input, cache.has_value());
  Logits logits;
  while (!generation.done()) {
    forward_into(cache ? &*cache : nullptr, generation.next_step(), logits);
    generation.take(logits);
  }
  return std::move(generation).ids();
}

}  // namespace kvproof
