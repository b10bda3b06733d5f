#include "harness/history/refusals.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/safetensors/text.hpp"

namespace kvproof::harness {
namespace {

using Maybe = std::optional<Refusal>;

template <typename... Args>
Maybe refusal(Code code, fmt::format_string<Args...> text, Args&&... args) {
  return Refusal{code, fmt::format(text, std::forward<Args>(args)...)};
}

bool known_kind(const std::string& kind) { return kind == "dynamic" || kind == "static" || kind == "static_sliding_window"; }

/// A size that a kind wants or does not want.
Maybe refuse_size(const char* name, const std::optional<std::int64_t>& value, bool wanted, const std::string& kind) {
  if (!wanted && value) return refusal(Code::bad_argument, "{} on a cache of kind {}", name, kind);
  if (wanted && (!value || *value < 1)) return refusal(Code::bad_argument, "{} missing or below 1 on a cache of kind {}", name, kind);
  return std::nullopt;
}

Maybe refuse_kind(const std::string& kind, const std::optional<std::int64_t>& capacity, const std::optional<std::int64_t>& window) {
  if (!known_kind(kind)) return refusal(Code::bad_argument, "unknown kind {}", shown(kind));
  if (auto no = refuse_size("capacity", capacity, kind != "dynamic", kind)) return no;
  return refuse_size("window", window, kind == "static_sliding_window", kind);
}

/// One forward call beside the facts it is checked against.
struct Checked {
  const Rows& input_ids;
  const std::optional<Rows>& attention_mask;
  const std::optional<Rows>& position_ids;
  const CacheState* cache;
  const ModelFacts& model;

  [[nodiscard]] std::size_t past() const { return cache != nullptr ? cache->length : 0; }
  [[nodiscard]] std::size_t columns() const { return input_ids.front().size(); }
};

Maybe refuse_empty(const Checked& call) {
  if (std::ranges::all_of(call.input_ids, [](const auto& row) { return row.empty(); }))
    return refusal(Code::empty_input, "input_ids has {} rows and no token", call.input_ids.size());
  return std::nullopt;
}

Maybe refuse_batch(const Checked& call) {
  const std::size_t batch = call.input_ids.size();
  const auto differs = [&](const char* what, std::size_t rows) -> Maybe {
    if (rows == batch) return std::nullopt;
    return refusal(Code::batch_mismatch, "{} has {} rows, input_ids has {}", what, rows, batch);
  };
  for (const auto& row : call.input_ids)
    if (row.size() != call.columns()) return refusal(Code::batch_mismatch, "input_ids is ragged: rows of {} and {}", call.columns(), row.size());
  if (call.attention_mask)
    if (auto no = differs("attention_mask", call.attention_mask->size())) return no;
  if (call.position_ids)
    if (auto no = differs("position_ids", call.position_ids->size())) return no;
  if (call.past() != 0) return differs("the cache", call.cache->rows.size());
  return std::nullopt;
}

Maybe refuse_tokens(const Checked& call) {
  const auto vocab_size = static_cast<std::int64_t>(call.model.vocab_size);
  for (const auto& row : call.input_ids)
    for (const std::int64_t token : row)
      if (token < 0 || token >= vocab_size) return refusal(Code::token_range, "token {} is not in 0..{}", token, vocab_size - 1);
  return std::nullopt;
}

Maybe refuse_mask_length(const Checked& call) {
  if (!call.attention_mask) return std::nullopt;
  const std::size_t want = call.past() + call.columns();
  for (const auto& row : *call.attention_mask)
    if (row.size() != want)
      return refusal(Code::mask_length, "cache {}, new {}, mask {}, expected {}", call.past(), call.columns(), row.size(), want);
  return std::nullopt;
}

Maybe refuse_mask_value(const Checked& call) {
  if (!call.attention_mask) return std::nullopt;
  for (const auto& row : *call.attention_mask)
    for (const std::int64_t bit : row)
      if (bit != 0 && bit != 1) return refusal(Code::mask_value, "mask value {} is neither 0 nor 1", bit);
  return std::nullopt;
}

Maybe refuse_revival(const Checked& call) {
  for (std::size_t b = 0; call.past() != 0 && b < call.input_ids.size(); ++b)
    for (std::size_t c = 0; c < call.past(); ++c)
      if (call.cache->mask[b][c] == 0 && (!call.attention_mask || (*call.attention_mask)[b][c] != 0))
        return refusal(Code::mask_revival, "row {} column {} was hidden and would be seen again", b, c);
  return std::nullopt;
}

Maybe refuse_position_shape(const Checked& call) {
  if (!call.position_ids) return std::nullopt;
  for (const auto& row : *call.position_ids)
    if (row.size() != call.columns()) return refusal(Code::position_shape, "{} positions for {} tokens", row.size(), call.columns());
  return std::nullopt;
}

Maybe refuse_positions(const Checked& call) {
  const auto n_positions = static_cast<std::int64_t>(call.model.n_positions);
  for (const auto& row : call.position_ids.value_or(Rows{}))
    for (const std::int64_t position : row)
      if (position < 0 || position >= n_positions)
        return refusal(Code::position_range, "position {} is not in 0..{}", position, n_positions - 1);
  if (!call.position_ids && call.past() + call.columns() > call.model.n_positions)
    return refusal(Code::context_length, "positions {}..{} pass n_positions {}", call.past(), call.past() + call.columns() - 1, n_positions);
  return std::nullopt;
}

Maybe refuse_capacity(const Checked& call) {
  if (call.cache == nullptr || call.cache->kind != "static") return std::nullopt;
  const std::size_t want = call.past() + call.columns();
  if (want <= *call.cache->capacity) return std::nullopt;
  return refusal(Code::capacity, "{} columns pass the capacity {}", want, *call.cache->capacity);
}

/// The checks that look at the arrays, in the order of the table.
constexpr Maybe (*kArrayChecks[])(const Checked&) = {refuse_empty,   refuse_batch,          refuse_tokens,    refuse_mask_length, refuse_mask_value,
                                                     refuse_revival, refuse_position_shape, refuse_positions, refuse_capacity};

template <std::size_t N>
Maybe first_refusal(Maybe (*const (&checks)[N])(const Checked&), const Checked& call) {
  for (const auto check : checks)
    if (auto no = check(call)) return no;
  return std::nullopt;
}

constexpr Maybe (*kPromptChecks[])(const Checked&) = {refuse_empty, refuse_batch, refuse_tokens, refuse_mask_length, refuse_mask_value};

Maybe refuse_hidden_prompt_end(const Generate& call) {
  for (const auto& row : call.attention_mask.value_or(Rows{}))
    if (row.back() == 0) return refusal(Code::mask_value, "the last prompt column is hidden");
  return std::nullopt;
}

/// Fed are the prompt and all new tokens but the last; the sums are compared so that no max_new_tokens overflows.
Maybe refuse_growth(const Generate& call, const ModelFacts& model) {
  const auto columns = static_cast<std::int64_t>(call.input_ids.front().size());
  const std::int64_t more = call.max_new_tokens - 1;
  for (std::size_t b = 0; b < call.input_ids.size(); ++b) {
    const std::int64_t last = call.attention_mask ? positions_of_mask((*call.attention_mask)[b]).back() : columns - 1;
    if (more >= static_cast<std::int64_t>(model.n_positions) - last)
      return refusal(Code::context_length, "{} tokens after position {} pass n_positions {}", more, last, model.n_positions);
  }
  if (call.kind == "static" && more > *call.capacity - columns)
    return refusal(Code::capacity, "{} + {} columns pass the capacity {}", columns, more, *call.capacity);
  return std::nullopt;
}

}  // namespace

std::vector<std::int64_t> positions_of_mask(const std::vector<std::int64_t>& mask) {
  std::vector<std::int64_t> positions;
  std::int64_t seen = 0;
  for (const std::int64_t bit : mask) positions.push_back(std::max<std::int64_t>(0, (seen += bit) - 1));
  return positions;
}

Maybe refuse_new(const NewCache& call) { return refuse_kind(call.kind, call.capacity, call.window); }

Maybe refuse_forward(const Forward& call, const CacheState* cache, const ModelFacts& model) {
  if (call.logits != "all" && call.logits != "last" && call.logits != "none")
    return refusal(Code::bad_argument, "unknown logits {}", shown(call.logits));
  return first_refusal(kArrayChecks, {call.input_ids, call.attention_mask, call.position_ids, cache, model});
}

Maybe refuse_read(const Read& call, const ModelFacts& model) {
  if (call.layer >= 0 && static_cast<std::uint64_t>(call.layer) < model.n_layer) return std::nullopt;
  return refusal(Code::layer_range, "layer {} is not in 0..{}", call.layer, model.n_layer - 1);
}

Maybe refuse_crop(const Crop& call, const CacheState& cache) {
  if (call.length < 0 || static_cast<std::uint64_t>(call.length) > cache.length)
    return refusal(Code::crop_range, "length {} is not in 0..{}", call.length, cache.length);
  const auto length = static_cast<std::size_t>(call.length);
  if (length == 0 || length == cache.length || !cache.window) return std::nullopt;
  const std::size_t first_seen = length >= *cache.window ? length - *cache.window + 1 : 0;  // by the next column, `length`
  if (first_seen >= std::min(cache.gone, length)) return std::nullopt;
  return refusal(Code::crop_evicted, "column {} is lost and would be seen from {} on", first_seen, length);
}

Maybe refuse_gather(const Gather& call, const CacheState& cache) {
  if (cache.rows.empty()) return refusal(Code::row_range, "the cache is empty");
  if (call.rows.empty()) return refusal(Code::row_range, "no rows are asked for");
  for (const std::int64_t row : call.rows)
    if (row < 0 || static_cast<std::uint64_t>(row) >= cache.rows.size())
      return refusal(Code::row_range, "row {} is not in 0..{}", row, cache.rows.size() - 1);
  if (cache.fixed_batch() && call.rows.size() != cache.rows.size())
    return refusal(Code::row_range, "{} rows from a cache of kind {} with {}", call.rows.size(), cache.kind, cache.rows.size());
  return std::nullopt;
}

Maybe refuse_generate(const Generate& call, const ModelFacts& model) {
  if (!call.kind && (call.capacity || call.window)) return refusal(Code::bad_argument, "capacity or window without kind");
  if (call.kind)
    if (auto no = refuse_kind(*call.kind, call.capacity, call.window)) return no;
  if (call.max_new_tokens < 1) return refusal(Code::bad_argument, "max_new_tokens is {}", call.max_new_tokens);
  const std::optional<Rows> no_positions;
  if (auto no = first_refusal(kPromptChecks, {call.input_ids, call.attention_mask, no_positions, nullptr, model})) return no;
  if (auto no = refuse_hidden_prompt_end(call)) return no;
  return refuse_growth(call, model);
}

}  // namespace kvproof::harness
