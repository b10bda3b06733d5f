#include "engine/session/check.hpp"

#include <fmt/format.h>

#include <algorithm>

// Each function below states one code for the whole call, so that the order of the calls is the order of the codes: a bad mask
// length in the last row comes before a bad mask value in the first.

namespace kvproof {
namespace {

struct Call {
  std::string_view name;
  const Rows& input_ids;
  const Rows* mask;       // null = all ones
  const Rows* positions;  // null = P, P+1, …
  [[nodiscard]] std::size_t batch() const noexcept { return input_ids.size(); }
  [[nodiscard]] std::size_t new_columns() const noexcept { return input_ids.front().size(); }
};

[[noreturn]] void refuse(RefusalCode code, std::string where, std::string found, std::string expected, std::string next = {}) {
  throw Refused(code, {std::move(where), std::move(found), std::move(expected), std::move(next)});
}

std::string at(const Call& call, std::string_view field, std::size_t row) { return fmt::format("{}: {} row {}", call.name, field, row); }

std::string at(const Call& call, std::string_view field, std::size_t row, std::size_t column) {
  return fmt::format("{}: {} row {} column {}", call.name, field, row, column);
}

bool in_range(std::int64_t value, std::size_t end) noexcept { return value >= 0 && static_cast<std::uint64_t>(value) < end; }

const Rows* rows_or_null(const std::optional<Rows>& rows) noexcept { return rows ? &*rows : nullptr; }

void check_input_is_not_empty(const Call& call) {
  if (std::ranges::any_of(call.input_ids, [](const auto& row) { return !row.empty(); })) return;
  refuse(RefusalCode::empty_input, std::string(call.name), call.input_ids.empty() ? "input_ids has no rows" : "every row of input_ids is empty",
         "at least one token");
}

void check_row_count(const Call& call, std::string_view field, std::size_t rows) {
  if (rows == call.batch()) return;
  refuse(RefusalCode::batch_mismatch, std::string(call.name), fmt::format("input_ids has {} rows and {} {}", call.batch(), field, rows),
         "the same number of rows");
}

void check_batch(const Call& call, const HeldColumns& held) {
  for (std::size_t r = 0; r < call.batch(); ++r)
    if (call.input_ids[r].size() != call.new_columns())
      refuse(RefusalCode::batch_mismatch, at(call, "input_ids", r), fmt::format("{} tokens", call.input_ids[r].size()),
             fmt::format("{} as in row 0", call.new_columns()), "Pad the shorter rows and hide the pads with attention_mask.");
  if (call.mask != nullptr) check_row_count(call, "attention_mask", call.mask->size());
  if (call.positions != nullptr) check_row_count(call, "position_ids", call.positions->size());
  if (held.length > 0) check_row_count(call, "the cache", held.mask->batch());
}

void check_tokens(const Call& call, std::size_t vocab_size) {
  for (std::size_t r = 0; r < call.batch(); ++r)
    for (std::size_t t = 0; t < call.new_columns(); ++t)
      if (const auto id = call.input_ids[r][t]; !in_range(id, vocab_size))
        refuse(RefusalCode::token_range, at(call, "input_ids", r, t), fmt::format("token {}", id), fmt::format("0 to {}", vocab_size - 1));
}

void check_mask_length(const Call& call, std::size_t past_length) {
  const std::size_t expected = past_length + call.new_columns();
  for (std::size_t r = 0; r < call.batch(); ++r)
    if (const std::size_t length = (*call.mask)[r].size(); length != expected)
      refuse(RefusalCode::mask_length, at(call, "attention_mask", r),
             fmt::format("cache {}, new {}, mask {}", past_length, call.new_columns(), length), std::to_string(expected));
}

void check_mask_values(const Call& call) {
  for (std::size_t r = 0; r < call.batch(); ++r)
    for (std::size_t c = 0; c < (*call.mask)[r].size(); ++c)
      if (const auto bit = (*call.mask)[r][c]; bit != 0 && bit != 1)
        refuse(RefusalCode::mask_value, at(call, "attention_mask", r, c), std::to_string(bit), "0 or 1");
}

void check_revival(const Call& call, const HeldColumns& held) {
  if (held.length == 0) return;
  for (std::size_t r = 0; r < call.batch(); ++r)
    for (std::size_t c = 0; c < held.length; ++c)
      if (held.mask->row(r)[c] == 0 && (call.mask == nullptr || (*call.mask)[r][c] == 1))
        refuse(RefusalCode::mask_revival, at(call, "attention_mask", r, c),
               call.mask == nullptr ? "no mask, which is all ones, over a hidden column" : "1 over a hidden column", "0",
               "After a padded prefill every call must bring its mask.");
}

void check_mask(const Call& call, const HeldColumns& held) {
  if (call.mask != nullptr) {
    check_mask_length(call, held.length);
    check_mask_values(call);
  }
  check_revival(call, held);
}

void check_position_shape(const Call& call) {
  for (std::size_t r = 0; r < call.batch(); ++r)
    if (const std::size_t length = (*call.positions)[r].size(); length != call.new_columns())
      refuse(RefusalCode::position_shape, at(call, "position_ids", r), fmt::format("{} positions", length),
             fmt::format("{}, one for each new token", call.new_columns()));
}

void check_position_range(const Call& call, std::size_t n_positions) {
  for (std::size_t r = 0; r < call.batch(); ++r)
    for (std::size_t t = 0; t < call.new_columns(); ++t)
      if (const auto position = (*call.positions)[r][t]; !in_range(position, n_positions))
        refuse(RefusalCode::position_range, at(call, "position_ids", r, t), fmt::format("position {}", position),
               fmt::format("0 to {}", n_positions - 1));
}

void check_positions(const Call& call, const HeldColumns& held, std::size_t n_positions) {
  if (call.positions != nullptr) {
    check_position_shape(call);
    check_position_range(call, n_positions);
  } else if (held.length + call.new_columns() > n_positions) {
    refuse(RefusalCode::context_length, std::string(call.name),
           fmt::format("cache {}, new {}: default positions up to {}", held.length, call.new_columns(), held.length + call.new_columns() - 1),
           fmt::format("at most {}", n_positions - 1), "Give position_ids, or crop the cache.");
  }
}

void check_capacity(std::string_view name, std::size_t columns, const std::optional<std::size_t>& capacity) {
  if (!capacity || columns <= *capacity) return;
  refuse(RefusalCode::capacity, std::string(name), fmt::format("{} columns", columns), fmt::format("at most {}, the cache's capacity", *capacity));
}

void check_logits_wanted(LogitsWanted logits) {
  if (logits == LogitsWanted::all || logits == LogitsWanted::last || logits == LogitsWanted::none) return;
  refuse(RefusalCode::bad_argument, "forward", fmt::format("logits {}", static_cast<int>(logits)), "all, last or none");
}

void check_last_column_is_visible(const Call& call) {
  if (call.mask == nullptr) return;
  for (std::size_t r = 0; r < call.batch(); ++r)
    if ((*call.mask)[r].back() == 0)
      refuse(RefusalCode::mask_value, at(call, "attention_mask", r, (*call.mask)[r].size() - 1), "0 at the last column of the prompt", "1",
             "Pad prompts on the left: generation goes on from the last column.");
}

// The last id is not fed: row r's largest position is its number of visible columns - 1, and one more for each fed token.
void check_generated_positions(const Call& call, std::uint64_t fed_tokens, std::size_t n_positions) {
  for (std::size_t r = 0; r < call.batch(); ++r) {
    const auto visible = call.mask == nullptr ? call.new_columns() : static_cast<std::size_t>(std::ranges::count((*call.mask)[r], 1));
    if (const std::uint64_t largest = visible - 1 + fed_tokens; largest >= n_positions)
      refuse(RefusalCode::context_length, at(call, "input_ids", r), fmt::format("positions up to {}", largest),
             fmt::format("at most {}", n_positions - 1), "Ask for fewer new tokens.");
  }
}

}  // namespace

void check_cache_options(const CacheOptions& options) {
  const auto fault = fault_of(options);
  if (!fault) return;
  const auto say = [](const std::optional<std::int64_t>& number) { return number ? std::to_string(*number) : std::string("none"); };
  refuse(RefusalCode::bad_argument, "cache options",
         fmt::format("kind {}, capacity {}, window {}: {}", cache_kind_name(options.kind), say(options.capacity), say(options.window), *fault), {});
}

void check_model(bool same_model) {
  if (!same_model) refuse(RefusalCode::model_mismatch, "cache", "it belongs to another model", "a cache of this session's model");
}

void check_forward(const Config& config, const HeldColumns& held, const ForwardInput& input) {
  const Call call{"forward", input.input_ids, rows_or_null(input.attention_mask), rows_or_null(input.position_ids)};
  check_logits_wanted(input.logits);
  check_input_is_not_empty(call);
  check_batch(call, held);
  check_tokens(call, config.vocab_size);
  check_mask(call, held);
  check_positions(call, held, config.n_positions);
  check_capacity(call.name, held.length + call.new_columns(), held.capacity);
}

void check_generate(const Config& config, const GenerateInput& input) {
  const Call call{"generate", input.input_ids, rows_or_null(input.attention_mask), nullptr};
  if (input.max_new_tokens < 1)
    refuse(RefusalCode::bad_argument, "generate", fmt::format("max_new_tokens {}", input.max_new_tokens), "at least 1");
  if (input.cache) check_cache_options(*input.cache);
  check_input_is_not_empty(call);
  check_batch(call, {});
  check_tokens(call, config.vocab_size);
  check_mask(call, {});
  check_last_column_is_visible(call);
  const auto fed_tokens = static_cast<std::uint64_t>(input.max_new_tokens) - 1;
  check_generated_positions(call, fed_tokens, config.n_positions);
  if (input.cache && input.cache->kind == CacheKind::fixed)
    check_capacity(call.name, call.new_columns() + fed_tokens, static_cast<std::size_t>(*input.cache->capacity));
}

void check_layer(std::size_t n_layer, std::int64_t layer) {
  if (!in_range(layer, n_layer)) refuse(RefusalCode::layer_range, "read", fmt::format("layer {}", layer), fmt::format("0 to {}", n_layer - 1));
}

void check_crop(const KvCache& cache, std::int64_t length) {
  if (!in_range(length, cache.length() + 1))
    refuse(RefusalCode::crop_range, "crop", fmt::format("length {}", length), fmt::format("0 to {}", cache.length()));
  const auto kept = static_cast<std::size_t>(length);
  const auto window = cache.window_in_force();
  if (kept == 0 || kept == cache.length() || !window) return;
  // The next query, at column `kept`, sees back to kept - W + 1; the last lost column is gone - 1.
  if (const std::size_t last_lost = std::min(cache.gone(), kept); last_lost > 0 && last_lost - 1 + *window > kept)
    refuse(RefusalCode::crop_evicted, "crop", fmt::format("length {} of {}, columns before {} are evicted", kept, cache.length(), cache.gone()),
           fmt::format("0, or a length at which the window of {} reaches no evicted column", *window));
}

void check_gather(const KvCache& cache, std::span<const std::int64_t> rows) {
  const std::size_t batch = cache.batch();
  if (batch == 0) refuse(RefusalCode::row_range, "gather", "the cache is empty", "a cache that holds columns");
  if (rows.empty()) refuse(RefusalCode::row_range, "gather", "no rows", "at least one row");
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (!in_range(rows[i], batch))
      refuse(RefusalCode::row_range, fmt::format("gather: entry {}", i), fmt::format("row {}", rows[i]), fmt::format("0 to {}", batch - 1));
  if (cache.kind() != CacheKind::dynamic && rows.size() != batch)
    refuse(RefusalCode::row_range, "gather", fmt::format("{} rows", rows.size()), fmt::format("{}: a static cache keeps its batch size", batch));
}

}  // namespace kvproof
