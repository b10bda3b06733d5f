#include <boost/test/unit_test.hpp>
#include <map>

#include "harness/laws/law_case_fixture.hpp"
#include "harness/laws/situations.hpp"

using namespace kvproof::harness;

BOOST_AUTO_TEST_SUITE(situations_reached)

namespace {

constexpr std::size_t kCases = 80;  // a law

Situations of_case(const Law& law, std::uint64_t seed, std::size_t index) {
  const MadeCase each = made_case(law, seed, index);
  return situations_of(each.made.trace, each.models, each.made.options);
}

/// The situations that a law is there for: its own traces must reach them, for a law is also run alone.
const std::map<std::string, std::vector<Situation>>& own_situations() {
  using enum Situation;
  static const std::map<std::string, std::vector<Situation>> kOwn = {
      {"length.grows", {append_one, append_many, reset_reused}},
      {"length.rows", {logits_last, logits_none}},
      {"length.chunking", {append_one, append_many}},
      {"length.limits", {capacity_minus_one, capacity_exact, capacity_plus_one, context_minus_one, context_exact, context_plus_one, longer_than_n_positions}},
      {"mask.causal_append", {append_many}},
      {"mask.hidden", {left_padding, interior_padding}},
      {"mask.holes", {interior_padding, warm_behind_padding}},
      {"mask.carried", {left_padding, warm_behind_padding, append_many}},
      {"mask.hide_past", {hidden_past}},
      {"mask.absent", {mask_absent_warm, mask_of_ones_warm}},
      {"mask.refused", {refused_mask_length, refused_mask_value, refused_mask_revival}},
      {"position.default", {default_after_crop, default_after_gather, default_after_clone, default_after_reset, default_after_load}},
      {"position.explicit", {positions_explicit, positions_not_rising, position_last}},
      {"position.refused", {refused_position_shape, refused_position_range, refused_context_length}},
      {"padding.left", {left_padding, ragged_batch, warm_behind_padding}},
      {"padding.right", {right_padding, ragged_batch, warm_behind_padding}},
      {"padding.ragged", {left_padding, right_padding, interior_padding, ragged_batch}},
      {"padding.neighbours", {neighbours_changed}},
      {"padding.pad_id", {pad_id_visible}},
      {"isolation.clone", {third_step_after_clone}},
      {"isolation.clone_chain", {clone_of_clone, relative_dropped, relative_cropped, relative_reset}},
      {"isolation.interleaved", {interleaved_equal, interleaved_different}},
      {"isolation.read_only", {read_only_warm, hidden_past_read_only, read_only_empty, full_pass_beside_caches}},
      {"isolation.reset", {reset_reused, drop_reused, crop_to_zero, reused_with_other_batch, reused_after_padding}},
      {"isolation.saved", {load_over_used, load_makes_cache, save_overwrites}},
      {"isolation.threads", {lanes_together}},
      {"isolation.models", {two_models, refused_model_mismatch}},
      {"cache.static", {capacity_exact, append_many}},
      {"cache.slots", {poisoned_slots}},
      {"cache.crop", {crop_to_zero, crop_to_one, crop_to_last_but_one, crop_to_all, crop_before_last_append, crop_last_append, crop_inside_last_append,
                      crop_across_padding, crop_keeps_padding}},
      {"cache.gather", {gather_identity, gather_swap, gather_repeat, gather_fewer, gather_more, gather_between_chunks, gather_padded, gather_batch_equals_heads,
                        batch_equals_heads, batch_differs_from_heads}},
      {"window.band", {window_minus_one, window_exact, window_plus_one, window_wider_than_history, window_above_capacity}},
      {"window.chunking", {shorter_chunk_at_wrap, equal_chunk_at_wrap, longer_chunk_at_wrap, shorter_chunk_after_wrap, equal_chunk_after_wrap,
                           longer_chunk_after_wrap, prefill_longer_than_window}},
      {"window.crop", {crop_after_wrap, refused_crop_evicted}},
      {"window.padding", {hidden_in_window, hidden_left_window}},
      {"numerics.oracle", {more_than_20_keys, append_many, left_padding, interior_padding}},
      {"numerics.kv", {read_empty, read_after_wrap}},
      {"generate.greedy", {generate_dynamic, generate_static, generate_sliding, generate_padded, generate_eos}},
      {"generate.caches", {generate_no_cache, generate_dynamic, generate_static}},
  };
  return kOwn;
}

/// Each code but model_mismatch, which two models show.
std::vector<Situation> refusals_by_calls() {
  std::vector<Situation> all;
  for (std::size_t code = 0; code < kCodeCount; ++code)
    if (static_cast<Code>(code) != Code::model_mismatch) all.push_back(static_cast<Situation>(static_cast<std::size_t>(Situation::refused_unknown_cache) + code));
  return all;
}

Situations reached_alone(const Law& law, std::uint64_t seed) {
  Situations reached;
  for (std::size_t index = 0; index < kCases; ++index) reached |= of_case(law, seed, index);
  return reached;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_seed_reaches_every_situation) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Situations reached;
    for (std::size_t index = 0; index < kCases && !reached.all(); ++index)
      for (const Law& law : laws()) reached |= of_case(law, seed, index);
    for (std::size_t s = 0; s < kSituationCount; ++s)
      BOOST_TEST(reached[s], "seed " << seed << ": no trace of any law reaches " << situation_name(static_cast<Situation>(s)));
  }
}

BOOST_AUTO_TEST_CASE(run_alone_each_law_reaches_what_it_is_there_for) {
  auto own = own_situations();
  own["isolation.refusal"] = refusals_by_calls();
  for (const auto& [id, situations] : own) {
    const Law* law = find_law(id);
    BOOST_REQUIRE_MESSAGE(law != nullptr, id);
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      const Situations reached = reached_alone(*law, seed);
      for (const Situation situation : situations)
        BOOST_TEST(reached.test(static_cast<std::size_t>(situation)), "seed " << seed << ": " << id << " does not reach " << situation_name(situation));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
