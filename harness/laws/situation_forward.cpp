#include "harness/laws/situation_forward.hpp"

#include <algorithm>
#include <set>

namespace kvproof::harness {
namespace {

/// Sets bits by condition, so that each situation is one line.
class Marks {
 public:
  void mark(Situation situation, bool holds) {
    if (holds) marks_.set(static_cast<std::size_t>(situation));
  }
  [[nodiscard]] const Situations& marks() const noexcept { return marks_; }

 private:
  Situations marks_;
};

/// The mask of a row as this call says it: [past + fresh].
const std::vector<std::uint8_t>& bits_of(const RowHistory& row) { return *row.columns.back().mask; }

/// The columns the last query sees.
std::size_t keys_of(const RowHistory& row) {
  std::size_t keys = 0;
  for (std::size_t c = 0; c < row.columns.size(); ++c) keys += row.visible(row.columns.size() - 1, c) ? 1 : 0;
  return keys;
}

bool any_row(const FedForward& fed, const auto& holds) { return std::ranges::any_of(fed.outcome.rows, holds); }

void mark_columns(const FedForward& fed, Marks& marks) {
  const bool warm = fed.past() != 0;
  const bool ones = fed.call.attention_mask && !any_row(fed, [](const RowHistory& row) { return hides(bits_of(row), 0, row.columns.size()); });
  marks.mark(Situation::append_one, warm && fed.fresh() == 1);
  marks.mark(Situation::append_many, warm && fed.fresh() > 1);
  marks.mark(Situation::more_than_20_keys, any_row(fed, [](const RowHistory& row) { return keys_of(row) > 20; }));
  marks.mark(Situation::longer_than_n_positions, fed.columns() > fed.model.n_positions);
  marks.mark(Situation::batch_equals_heads, fed.before != nullptr && fed.outcome.rows.size() == fed.model.n_head);
  marks.mark(Situation::batch_differs_from_heads, fed.before != nullptr && fed.outcome.rows.size() != fed.model.n_head);
  marks.mark(Situation::logits_last, fed.call.logits == "last" && fed.fresh() > 1);
  marks.mark(Situation::mask_absent_warm, warm && !fed.call.attention_mask);
  marks.mark(Situation::mask_of_ones_warm, warm && ones);
}

/// Whether any given position of a row, at column t of the call, is as asked.
bool any_position(const FedForward& fed, const auto& holds) {
  for (const auto& row : fed.call.position_ids.value_or(Rows{}))
    for (std::size_t t = 0; t < row.size(); ++t)
      if (holds(row, t)) return true;
  return false;
}

void mark_positions(const FedForward& fed, Marks& marks) {
  const auto last = static_cast<std::int64_t>(fed.model.n_positions) - 1;
  const auto past = static_cast<std::int64_t>(fed.past());
  marks.mark(Situation::positions_explicit, any_position(fed, [&](const auto& row, std::size_t t) { return row[t] != past + static_cast<std::int64_t>(t); }));
  marks.mark(Situation::positions_not_rising, any_position(fed, [](const auto& row, std::size_t t) { return t != 0 && row[t] <= row[t - 1]; }));
  marks.mark(Situation::position_last, any_position(fed, [&](const auto& row, std::size_t t) { return row[t] == last; }));
  marks.mark(Situation::context_minus_one, !fed.call.position_ids && fed.columns() + 1 == fed.model.n_positions);
  marks.mark(Situation::context_exact, !fed.call.position_ids && fed.columns() == fed.model.n_positions);
}

void mark_padding_of(const std::vector<std::uint8_t>& bits, Marks& marks) {
  const auto first = std::ranges::find(bits, 1), end = std::find(bits.rbegin(), bits.rend(), 1).base();
  if (first == bits.end()) return;  // wholly hidden: no side is the left one
  marks.mark(Situation::left_padding, first != bits.begin());
  marks.mark(Situation::right_padding, end != bits.end());
  marks.mark(Situation::interior_padding, std::find(first, end, 0) != end);
}

/// Whether a token id stands in a hidden column and in a visible one of the batch.
bool pad_id_is_visible(const FedForward& fed) {
  std::set<std::int64_t> hidden, visible;
  for (const RowHistory& row : fed.outcome.rows)
    for (std::size_t c = 0; c < row.columns.size(); ++c) (bits_of(row)[c] == 0 ? hidden : visible).insert(row.columns[c].token);
  return std::ranges::any_of(hidden, [&](std::int64_t token) { return visible.contains(token); });
}

void mark_padding(const FedForward& fed, Marks& marks) {
  std::set<std::ptrdiff_t> counts;
  for (const RowHistory& row : fed.outcome.rows) {
    mark_padding_of(bits_of(row), marks);
    counts.insert(std::ranges::count(bits_of(row), 1));
  }
  marks.mark(Situation::ragged_batch, counts.size() > 1);
  marks.mark(Situation::warm_behind_padding, any_row(fed, [&](const RowHistory& row) { return hides(bits_of(row), 0, fed.past()); }));
  marks.mark(Situation::pad_id_visible, pad_id_is_visible(fed));
}

void mark_capacity(const FedForward& fed, Marks& marks) {
  if (fed.before->kind != "static") return;
  marks.mark(Situation::capacity_minus_one, fed.columns() + 1 == *fed.before->capacity);
  marks.mark(Situation::capacity_exact, fed.columns() == *fed.before->capacity);
}

/// A chunk beside the window, at the wrap (this call loses the first column) and after it.
void mark_chunk(const FedForward& fed, std::size_t window, Marks& marks) {
  const bool at = fed.past() != 0 && fed.before->gone == 0 && fed.columns() > window, after = fed.before->gone != 0;
  marks.mark(Situation::shorter_chunk_at_wrap, at && fed.fresh() < window);
  marks.mark(Situation::equal_chunk_at_wrap, at && fed.fresh() == window);
  marks.mark(Situation::longer_chunk_at_wrap, at && fed.fresh() > window);
  marks.mark(Situation::shorter_chunk_after_wrap, after && fed.fresh() < window);
  marks.mark(Situation::equal_chunk_after_wrap, after && fed.fresh() == window);
  marks.mark(Situation::longer_chunk_after_wrap, after && fed.fresh() > window);
  marks.mark(Situation::prefill_longer_than_window, fed.past() == 0 && fed.fresh() > window);
}

void mark_window(const FedForward& fed, Marks& marks) {
  if (!fed.before->window) return;
  const std::size_t window = *fed.before->window, columns = fed.columns();
  mark_chunk(fed, window, marks);
  marks.mark(Situation::window_minus_one, columns + 1 == window);
  marks.mark(Situation::window_exact, columns == window);
  marks.mark(Situation::window_plus_one, columns == window + 1);
  marks.mark(Situation::window_wider_than_history, fed.past() != 0 && columns < window);
  if (columns <= window) return;
  const std::size_t first_seen = columns - window;
  marks.mark(Situation::hidden_in_window, any_row(fed, [&](const RowHistory& row) { return hides(bits_of(row), first_seen, columns - 1); }));
  marks.mark(Situation::hidden_left_window, any_row(fed, [&](const RowHistory& row) { return hides(bits_of(row), 0, first_seen); }));
}

}  // namespace

bool hides(const std::vector<std::uint8_t>& bits, std::size_t from, std::size_t to) noexcept {
  for (std::size_t c = from; c < to && c < bits.size(); ++c)
    if (bits[c] == 0) return true;
  return false;
}

Situations situations_of_forward(const FedForward& fed) {
  Marks marks;
  mark_columns(fed, marks);
  mark_positions(fed, marks);
  mark_padding(fed, marks);
  if (fed.before != nullptr) mark_capacity(fed, marks);
  if (fed.before != nullptr) mark_window(fed, marks);
  return marks.marks();
}

}  // namespace kvproof::harness
