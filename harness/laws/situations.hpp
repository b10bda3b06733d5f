#pragma once
#include <bitset>
#include <map>
#include <string>
#include <string_view>

#include "harness/contract/backend.hpp"
#include "harness/history/refusals.hpp"
#include "harness/trace/step.hpp"

namespace kvproof::harness {

/// What reports about caches show to matter. A situation counts only if the trace goes on to where a fault in it would show: a
/// crop that nothing is fed behind is no situation. situation_words() says each in a sentence.
enum class Situation {
  // new columns
  append_one, append_many, more_than_20_keys, longer_than_n_positions, batch_equals_heads, batch_differs_from_heads, logits_last, logits_none,
  mask_absent_warm, mask_of_ones_warm, positions_explicit, positions_not_rising, position_last,
  // padding
  left_padding, right_padding, interior_padding, ragged_batch, warm_behind_padding, hidden_past, hidden_past_read_only, pad_id_visible, neighbours_changed,
  // copies
  third_step_after_clone, clone_of_clone, relative_dropped, relative_cropped, relative_reset,
  // crop
  crop_to_zero, crop_to_one, crop_to_last_but_one, crop_to_all, crop_before_last_append, crop_last_append, crop_inside_last_append,
  crop_across_padding, crop_keeps_padding, crop_after_wrap,
  // edges
  capacity_minus_one, capacity_exact, capacity_plus_one, context_minus_one, context_exact, context_plus_one, window_minus_one, window_exact,
  window_plus_one,
  // gather
  gather_identity, gather_swap, gather_repeat, gather_fewer, gather_more, gather_between_chunks, gather_padded, gather_batch_equals_heads,
  // reuse
  reset_reused, drop_reused, reused_with_other_batch, reused_after_padding,
  // caches side by side
  interleaved_equal, interleaved_different, two_models, lanes_together,
  // slots and windows
  poisoned_slots, shorter_chunk_at_wrap, equal_chunk_at_wrap, longer_chunk_at_wrap, shorter_chunk_after_wrap, equal_chunk_after_wrap,
  longer_chunk_after_wrap, prefill_longer_than_window, window_wider_than_history, window_above_capacity, hidden_in_window, hidden_left_window,
  // saved caches
  load_over_used, load_makes_cache, save_overwrites,
  // calls that leave no trace
  read_only_warm, read_only_empty, full_pass_beside_caches, read_empty, read_after_wrap,
  // positions from a cursor that has moved
  default_after_crop, default_after_gather, default_after_clone, default_after_reset, default_after_load,
  // generation
  generate_no_cache, generate_dynamic, generate_static, generate_sliding, generate_padded, generate_eos,
  // refusals, in the order of Code
  refused_unknown_cache, refused_model_mismatch, refused_cache_exists, refused_name_unknown, refused_bad_argument, refused_layer_range,
  refused_empty_input, refused_batch_mismatch, refused_token_range, refused_mask_length, refused_mask_value, refused_mask_revival,
  refused_position_shape, refused_position_range, refused_context_length, refused_capacity, refused_crop_range, refused_crop_evicted,
  refused_row_range,
};

inline constexpr std::size_t kSituationCount = static_cast<std::size_t>(Situation::refused_row_range) + 1;

/// Indexed by Situation.
using Situations = std::bitset<kSituationCount>;

/// As it stands in reports, `append_many`, and in words, "two or more tokens appended to a warm cache".
[[nodiscard]] std::string_view situation_name(Situation situation) noexcept;
[[nodiscard]] std::string_view situation_words(Situation situation) noexcept;

/// Which situations a trace contains, whoever wrote it: it is played on history/ alone, and nothing of the generators is known.
///
/// Errors    DataError for a model that `models` does not name.
/// Cost      like outcomes_of: a few copies of the histories a step.
[[nodiscard]] Situations situations_of(const Trace& trace, const std::map<std::string, ModelFacts>& models, const RunOptions& options);

}  // namespace kvproof::harness
