// One observer a lane. A situation that only shows later waits beside its cache (Notes) until the cache is asked; a copy of the
// cache takes what waits along, so that a probe on a clone shows it as well as the cache itself.
#include "harness/laws/situations.hpp"

#include <algorithm>
#include <numeric>

#include "engine/base/seed.hpp"
#include "harness/laws/situation_forward.hpp"

namespace kvproof::harness {
namespace {

/// What was in a cache when it was emptied.
struct Emptied {
  std::size_t rows = 0;
  bool padded = false;
};

/// What is remembered of a cache beside its state.
struct Notes {
  Situations when_fed, when_asked, when_default;  ///< shown by the next forward; by it or a read; by it without positions
  std::size_t family = 0;                         ///< caches of one family hold copies of one history
  std::size_t copies = 0;                         ///< clones between this one and the first
  std::size_t before_last = 0, last_append = 0;   ///< length before the last append, and its columns; 0 = not known any more
  bool moved_after_chunk = false;                 ///< rows were moved, and the append before that was a chunk
  bool window_cut = false;                        ///< the capacity is below the window
  std::size_t fed_at = 0;                         ///< turn of the last append; 0 = never
  std::optional<Emptied> emptied;
};

/// Two copies since they parted.
struct Branches {
  std::string names[2];
  bool wrote[2] = {false, false};
  std::size_t last = 0;
};

void mark(Situations& situations, Situation situation, bool holds = true) {
  if (holds) situations.set(static_cast<std::size_t>(situation));
}

bool padded(const CacheState& cache) {
  return std::ranges::any_of(cache.mask, [](const auto& bits) { return hides(bits, 0, bits.size()); });
}

bool same_shape(const CacheState& a, const CacheState& b) {
  return a.kind == b.kind && a.capacity == b.capacity && a.window == b.window && a.model == b.model && a.rows.size() == b.rows.size();
}

bool is_identity(const std::vector<std::int64_t>& rows, std::size_t batch) {
  std::vector<std::int64_t> same(batch);
  std::iota(same.begin(), same.end(), 0);
  return rows == same;
}

bool repeats(std::vector<std::int64_t> rows) {
  std::ranges::sort(rows);
  return std::ranges::adjacent_find(rows) != rows.end();
}

class LaneObserver {
 public:
  LaneObserver(const std::map<std::string, ModelFacts>& models, const RunOptions& options) : world_(models), options_(options) {}

  [[nodiscard]] const Situations& seen() const noexcept { return seen_; }

  /// Plays a call. Returns whether it fed a warm cache.
  bool step(const Call& call) {
    const auto name = cache_of(call);
    const CacheState* held = name ? world_.find(std::string(*name)) : nullptr;
    const std::optional<CacheState> before = held != nullptr ? std::optional(*held) : std::nullopt;
    const Outcome outcome = world_.apply(call);
    if (outcome.refusal) {
      refused(call, before, outcome.refusal->code);
      return false;
    }
    std::visit([&](const auto& each) { accepted(each, before ? &*before : nullptr, outcome); }, call);
    return std::holds_alternative<Forward>(call) && before && before->length != 0;
  }

 private:
  void refused(const Call& call, const std::optional<CacheState>& before, Code code) {
    mark(later_, static_cast<Situation>(static_cast<std::size_t>(Situation::refused_unknown_cache) + static_cast<std::size_t>(code)));
    const auto* forward = std::get_if<Forward>(&call);
    if (forward == nullptr || (code != Code::capacity && code != Code::context_length)) return;
    const std::size_t columns = (before ? before->length : 0) + forward->input_ids.front().size();
    const std::string name = forward->model.value_or(before ? before->model : "main");
    mark(later_, Situation::capacity_plus_one, code == Code::capacity && columns == *before->capacity + 1);
    mark(later_, Situation::context_plus_one, code == Code::context_length && columns == world_.model(name).n_positions + 1);
  }

  void accepted(const NewCache& call, const CacheState*, const Outcome&) {
    Notes& notes = notes_[call.cache] = {};
    notes.family = ++families_;
    notes.window_cut = call.window && *call.window > *call.capacity;
    const auto dropped = dropped_.find(call.cache);
    if (dropped == dropped_.end()) return;
    notes.emptied = dropped->second;
    mark(notes.when_fed, Situation::drop_reused);
    dropped_.erase(dropped);
  }

  void accepted(const Forward& call, const CacheState* before, const Outcome& outcome) {
    const FedForward fed{call, before, outcome, world_.model(outcome.model)};
    seen_ |= situations_of_forward(fed);
    look_at_neighbours(outcome);
    if (before == nullptr) {
      mark(later_, Situation::full_pass_beside_caches, std::ranges::any_of(world_.caches(), [](const auto& each) { return each.second.length != 0; }));
      return;
    }
    Notes& notes = notes_[*call.cache];
    show(fed, notes);
    look_at_turns(*call.cache, notes);
    ask(*call.cache);
    if (call.use_cache) wrote(fed, notes);
    else read_only(fed, notes);
  }

  /// What waited beside a cache that is fed now.
  void show(const FedForward& fed, Notes& notes) {
    const bool warm = fed.past() != 0;
    seen_ |= notes.when_fed | notes.when_asked | later_;
    if (!fed.call.position_ids) seen_ |= notes.when_default;
    for (Situations* shown : {&notes.when_fed, &notes.when_asked, &notes.when_default, &later_}) shown->reset();
    mark(seen_, Situation::gather_between_chunks, notes.moved_after_chunk && fed.fresh() > 1);
    mark(seen_, Situation::window_above_capacity, notes.window_cut && fed.columns() > *fed.before->capacity);
    const std::optional<std::size_t> slots = fed.before->window ? fed.before->window : fed.before->capacity;
    mark(seen_, Situation::poisoned_slots, options_.poison && warm && slots && fed.columns() < *slots);
  }

  void wrote(const FedForward& fed, Notes& notes) {
    if (notes.emptied) {
      mark(seen_, Situation::reused_with_other_batch, notes.emptied->rows != fed.outcome.rows.size());
      mark(seen_, Situation::reused_after_padding, notes.emptied->padded && !fed.call.attention_mask);
      notes.emptied.reset();
    }
    mark(notes.when_fed, Situation::hidden_past, hides_past(fed));
    mark(notes.when_fed, Situation::logits_none, fed.call.logits == "none");
    notes.before_last = fed.past();
    notes.last_append = fed.fresh();
    notes.moved_after_chunk = false;
    notes.fed_at = ++turn_;
    for (Branches& pair : branches_)
      for (const std::size_t i : {0U, 1U})
        if (pair.names[i] == *fed.call.cache) {
          pair.wrote[i] = true;
          pair.last = i;
        }
  }

  void read_only(const FedForward& fed, Notes& notes) {
    mark(notes.when_fed, Situation::hidden_past_read_only, hides_past(fed));
    mark(notes.when_asked, Situation::read_only_warm, fed.past() != 0);
    mark(notes.when_fed, Situation::read_only_empty, fed.past() == 0);
  }

  /// Whether a column that the cache still shows is hidden by this call.
  static bool hides_past(const FedForward& fed) {
    for (std::size_t b = 0; fed.past() != 0 && b < fed.outcome.rows.size(); ++b)
      for (std::size_t c = 0; c < fed.past(); ++c)
        if (fed.before->mask[b][c] != 0 && (*fed.outcome.rows[b].columns.back().mask)[c] == 0) return true;
    return false;
  }

  /// The same row, judged by what its last column means, among other rows or in another order.
  void look_at_neighbours(const Outcome& outcome) {
    std::vector<std::uint64_t> hashes;
    std::uint64_t batch = 0;
    for (const RowHistory& row : outcome.rows) {
      hashes.push_back(mix64(row.meaning_hashes().back() ^ fnv1a(outcome.model)));
      batch = mix64(batch + hashes.back());
    }
    for (std::size_t b = 0; b < hashes.size(); ++b)
      if (!outcome.rows[b].hidden(outcome.rows[b].columns.size() - 1))
        mark(seen_, Situation::neighbours_changed, batch_of_row_.try_emplace(hashes[b], batch).first->second != batch);
  }

  /// Another cache has been fed since this one was.
  void look_at_turns(const std::string& name, const Notes& notes) {
    const CacheState& cache = *world_.find(name);
    for (const auto& [other_name, other] : notes_) {
      if (notes.fed_at == 0 || other.fed_at <= notes.fed_at || other.family == notes.family) continue;
      const CacheState& between = *world_.find(other_name);
      mark(seen_, Situation::two_models, between.model != cache.model);
      mark(seen_, same_shape(between, cache) ? Situation::interleaved_equal : Situation::interleaved_different);
    }
  }

  /// A forward or a read of one of two branches.
  void ask(const std::string& name) {
    for (const Branches& pair : branches_)
      mark(seen_, Situation::third_step_after_clone, pair.wrote[0] && pair.wrote[1] && pair.names[1 - pair.last] == name);
  }

  /// What `name` held is shared no longer.
  void part(const std::string& name) {
    std::erase_if(branches_, [&](const Branches& pair) { return pair.names[0] == name || pair.names[1] == name; });
  }

  void tell_relatives(const std::string& name, Situation situation) {
    for (auto& [other, notes] : notes_)
      mark(notes.when_asked, situation, other != name && notes.family == notes_[name].family && world_.find(other)->length != 0);
  }

  void accepted(const Clone& call, const CacheState*, const Outcome& outcome) {
    Notes notes = notes_[call.from];
    ++notes.copies;
    mark(notes.when_fed, Situation::clone_of_clone, notes.copies > 1);
    mark(notes.when_default, Situation::default_after_clone, *outcome.length != 0);
    notes_[call.cache] = notes;
    branches_.push_back({{call.from, call.cache}});
  }

  void accepted(const Crop& call, const CacheState* before, const Outcome&) {
    const std::size_t past = before->length, length = static_cast<std::size_t>(call.length);
    if (past == 0) return;
    Notes& notes = notes_[call.cache];
    mark_crop(*before, length, notes);
    if (length != past) {
      tell_relatives(call.cache, Situation::relative_cropped);
      notes.last_append = 0;
    }
    if (length == 0) empty(call.cache, *before);
  }

  static void mark_crop(const CacheState& before, std::size_t length, Notes& notes) {
    const std::size_t past = before.length, append = notes.before_last;
    const bool shorter = length != 0 && length < past, known = notes.last_append != 0 && append != 0;
    const auto any_row = [&](const auto& holds) { return shorter && std::ranges::any_of(before.mask, holds); };
    Situations& shown = notes.when_fed;
    mark(shown, Situation::crop_to_zero, length == 0);
    mark(shown, Situation::crop_to_one, shorter && length == 1);
    mark(shown, Situation::crop_to_last_but_one, shorter && length + 1 == past);
    mark(shown, Situation::crop_to_all, length == past);
    mark(shown, Situation::crop_before_last_append, shorter && known && length + 1 == append);
    mark(shown, Situation::crop_last_append, shorter && known && length == append);
    mark(shown, Situation::crop_inside_last_append, shorter && known && length == append + 1);
    mark(shown, Situation::crop_across_padding, any_row([&](const auto& bits) { return hides(bits, 0, length) && hides(bits, length, past); }));
    mark(shown, Situation::crop_keeps_padding, any_row([&](const auto& bits) { return hides(bits, 0, length); }));
    mark(shown, Situation::crop_after_wrap, shorter && before.gone != 0);
    mark(notes.when_default, Situation::default_after_crop, shorter);
  }

  /// From here on the cache is a stranger to its copies.
  void empty(const std::string& name, const CacheState& before) {
    Notes& notes = notes_[name];
    notes.emptied = Emptied{before.rows.size(), padded(before)};
    notes.family = ++families_;
    notes.copies = notes.last_append = 0;
    part(name);
  }

  void accepted(const Gather& call, const CacheState* before, const Outcome&) {
    const std::size_t batch = before->rows.size(), n_head = world_.model(before->model).n_head;
    const bool identity = is_identity(call.rows, batch), repeated = repeats(call.rows);
    Notes& notes = notes_[call.cache];
    Situations& shown = notes.when_fed;
    mark(shown, Situation::gather_identity, identity);
    mark(shown, Situation::gather_swap, !identity && !repeated && call.rows.size() == batch);
    mark(shown, Situation::gather_repeat, repeated);
    mark(shown, Situation::gather_fewer, call.rows.size() < batch);
    mark(shown, Situation::gather_more, call.rows.size() > batch);
    mark(shown, Situation::gather_padded, !identity && std::ranges::adjacent_find(before->mask, std::not_equal_to{}) != before->mask.end());
    mark(shown, Situation::gather_batch_equals_heads, !identity && batch == n_head);
    mark(notes.when_default, Situation::default_after_gather);
    notes.moved_after_chunk = !identity && notes.last_append > 1;
  }

  void accepted(const Reset& call, const CacheState* before, const Outcome&) {
    if (before->length == 0) return;
    tell_relatives(call.cache, Situation::relative_reset);
    empty(call.cache, *before);
    mark(notes_[call.cache].when_fed, Situation::reset_reused);
    mark(notes_[call.cache].when_default, Situation::default_after_reset);
  }

  void accepted(const Drop& call, const CacheState* before, const Outcome&) {
    if (before->length != 0) {
      tell_relatives(call.cache, Situation::relative_dropped);
      dropped_[call.cache] = {before->rows.size(), padded(*before)};
    }
    part(call.cache);
    notes_.erase(call.cache);
  }

  void accepted(const Length&, const CacheState*, const Outcome&) {}

  void accepted(const Read& call, const CacheState* before, const Outcome&) {
    mark(seen_, Situation::read_empty, before->length == 0);
    mark(seen_, Situation::read_after_wrap, before->gone != 0);
    if (before->length == 0) return;
    Notes& notes = notes_[call.cache];
    seen_ |= notes.when_asked | later_;
    notes.when_asked.reset();
    later_.reset();
    ask(call.cache);
  }

  void accepted(const Save& call, const CacheState*, const Outcome&) {
    const bool again = saved_.contains(call.to);
    saved_[call.to] = notes_[call.cache];
    mark(saved_[call.to].when_fed, Situation::save_overwrites, again);
  }

  void accepted(const Load& call, const CacheState* before, const Outcome& outcome) {
    part(call.cache);
    Notes notes = saved_[call.from];
    notes.fed_at = 0;
    mark(notes.when_fed, Situation::load_over_used, before != nullptr && before->length != 0);
    mark(notes.when_fed, Situation::load_makes_cache, before == nullptr);
    mark(notes.when_default, Situation::default_after_load, *outcome.length != 0);
    notes_[call.cache] = notes;
  }

  void accepted(const Generate& call, const CacheState*, const Outcome&) {
    const std::string kind = call.kind.value_or("");
    mark(seen_, Situation::generate_no_cache, kind.empty());
    mark(seen_, Situation::generate_dynamic, kind == "dynamic");
    mark(seen_, Situation::generate_static, kind == "static");
    mark(seen_, Situation::generate_sliding, kind == "static_sliding_window");
    mark(seen_, Situation::generate_eos, call.eos_token_id.has_value());
    for (const auto& row : call.attention_mask.value_or(Rows{})) mark(seen_, Situation::generate_padded, std::ranges::find(row, 0) != row.end());
  }

  World world_;
  const RunOptions options_;
  Situations seen_, later_;  // later_: shown by whichever cache is asked next
  std::map<std::string, Notes> notes_, saved_;
  std::map<std::string, Emptied> dropped_;
  std::map<std::uint64_t, std::uint64_t> batch_of_row_;
  std::vector<Branches> branches_;
  std::size_t families_ = 0, turn_ = 0;
};

}  // namespace

Situations situations_of(const Trace& trace, const std::map<std::string, ModelFacts>& models, const RunOptions& options) {
  std::map<std::size_t, LaneObserver> lanes;
  std::map<std::size_t, std::size_t> steps_of_lane, lanes_fed;  // the second: by the number of a lane's step
  for (const Step& step : trace) {
    LaneObserver& lane = lanes.try_emplace(step.lane, models, options).first->second;
    const std::size_t round = steps_of_lane[step.lane]++;
    if (lane.step(step.call)) ++lanes_fed[round];
  }
  Situations situations;
  for (const auto& [lane, observer] : lanes) situations |= observer.seen();
  mark(situations, Situation::lanes_together, std::ranges::any_of(lanes_fed, [](const auto& round) { return round.second > 1; }));
  return situations;
}

}  // namespace kvproof::harness
