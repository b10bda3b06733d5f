#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "harness/defects/fault_groups.hpp"

namespace kvproof::harness {
namespace {

using Lengths = std::map<std::string, std::size_t>;  ///< by name of cache
using Masks = std::map<std::string, Rows>;           ///< by name of cache
using Names = std::map<std::string, std::string>;    ///< of caches, by what they were saved as

Answer* answer_of(Reply& reply) { return std::get_if<Answer>(&reply); }

std::size_t past_of(EngineLane& lane, const Forward& call) {
  const Cache* cache = call.cache ? lane.cache(*call.cache) : nullptr;
  return cache != nullptr ? cache->length() : 0;
}

bool regular(const Forward& call) { return !call.input_ids.empty() && !call.input_ids.front().empty(); }

/// from, from + 1, …: `count` numbers.
std::vector<std::int64_t> counting(std::size_t from, std::size_t count) {
  std::vector<std::int64_t> row(count);
  std::iota(row.begin(), row.end(), static_cast<std::int64_t>(from));
  return row;
}

Answer of_length(std::size_t length) {
  Answer answer;
  answer.length = static_cast<std::int64_t>(length);
  return answer;
}

Fault length_of_last_chunk(const Fired& fired) {
  return remembering<Lengths>([fired](Lengths& chunk, EngineLane& lane, const Call& call) -> Reply {
    if (const auto* forward = std::get_if<Forward>(&call); forward != nullptr && forward->cache && regular(*forward)) chunk[*forward->cache] = forward->input_ids.front().size();
    Reply reply = lane.call(call);
    const auto* length = std::get_if<Length>(&call);
    if (length == nullptr || answer_of(reply) == nullptr || !chunk.contains(length->cache)) return reply;
    if (answer_of(reply)->length != static_cast<std::int64_t>(chunk.at(length->cache))) ++*fired;
    return of_length(chunk.at(length->cache));
  });
}

/// `last` returns the first column of a chunk.
Fault logits_wrong_row(const Fired& fired) {
  return on<Forward>([fired](EngineLane& lane, const Forward& call) {
    if (call.logits != "last" || !regular(call) || call.input_ids.front().size() < 2) return lane.call(call);
    Forward all = call;
    all.logits = "all";
    Reply reply = lane.call(all);
    if (Answer* answer = answer_of(reply)) {
      ++*fired;
      Tensor& logits = *answer->logits;
      Tensor first{{logits.shape[0], 1, logits.shape[2]}, {}};
      for (std::size_t row = 0; row < logits.shape[0]; ++row)
        first.values.insert(first.values.end(), &logits.values[row * logits.shape[1] * logits.shape[2]], &logits.values[row * logits.shape[1] * logits.shape[2]] + logits.shape[2]);
      logits = std::move(first);
    }
    return reply;
  });
}

/// Default positions start at 0 whatever the past.
Fault pos_restart(const Fired& fired) {
  return on<Forward>([fired](EngineLane& lane, const Forward& call) {
    if (call.position_ids || past_of(lane, call) == 0) return lane.call(call);
    ++*fired;
    Forward changed = call;
    changed.position_ids.emplace();
    for (const auto& row : call.input_ids) changed.position_ids->push_back(counting(0, row.size()));
    return lane.call(changed);
  });
}

Fault stale_logits(const Fired& fired) {
  using Seen = std::map<Rows, Tensor>;
  return remembering<Seen>([fired](Seen& seen, EngineLane& lane, const Call& call) -> Reply {
    Reply reply = lane.call(call);
    Answer* answer = answer_of(reply);
    const auto* forward = std::get_if<Forward>(&call);
    if (forward == nullptr || answer == nullptr || !answer->logits || forward->logits != "all") return reply;
    const auto [known, fresh] = seen.try_emplace(forward->input_ids, *answer->logits);
    if (!fresh && known->second != *answer->logits) {
      ++*fired;
      answer->logits = known->second;
    }
    return reply;
  });
}

Fault capacity_exact_refused(const Fired& fired) {
  return on<Forward>([fired](EngineLane& lane, const Forward& call) -> Reply {
    const Cache* cache = call.cache ? lane.cache(*call.cache) : nullptr;
    const bool fixed = cache != nullptr && cache->options().kind == CacheKind::fixed && regular(call);
    if (!fixed || cache->length() + call.input_ids.front().size() != static_cast<std::size_t>(*cache->options().capacity)) return lane.call(call);
    ++*fired;
    return Refusal{Code::capacity, "the exact fit"};
  });
}

/// What was visible when it was fed stays visible: a column hidden later is not.
Fault hide_past_ignored(const Fired& fired) {
  return remembering<Masks>([fired](Masks& bits, EngineLane& lane, const Call& call) -> Reply {
    const auto* forward = std::get_if<Forward>(&call);
    if (forward == nullptr || !forward->cache || !forward->attention_mask || !regular(*forward)) {
      if (const auto name = cache_of(call); name && !std::holds_alternative<Length>(call) && !std::holds_alternative<Read>(call)) bits.erase(std::string(*name));
      return lane.call(call);
    }
    Forward changed = *forward;
    const Rows& before = bits[*forward->cache];
    for (std::size_t b = 0; b < before.size() && b < changed.attention_mask->size(); ++b)
      for (std::size_t c = 0; c < before[b].size() && c < (*changed.attention_mask)[b].size(); ++c) (*changed.attention_mask)[b][c] = before[b][c];
    Reply reply = lane.call(changed);
    if (answer_of(reply) == nullptr) return lane.call(call);
    if (changed.attention_mask != forward->attention_mask) ++*fired;
    if (forward->use_cache) bits[*forward->cache] = *changed.attention_mask;
    return reply;
  });
}

/// An absent mask takes another path: the sums end in other bits.
Fault absent_mask_other_path(const Fired& fired) {
  return on<Forward>([fired](EngineLane& lane, const Forward& call) {
    Reply reply = lane.call(call);
    Answer* answer = answer_of(reply);
    if (call.attention_mask || answer == nullptr || !answer->logits) return reply;
    ++*fired;
    for (double& value : answer->logits->values) value = std::nextafter(static_cast<float>(value), INFINITY);
    return reply;
  });
}

Fault mask_short_accepted(const Fired& fired) {
  return on<Forward>([fired](EngineLane& lane, const Forward& call) {
    if (!call.attention_mask || !regular(call)) return lane.call(call);
    Forward changed = call;
    const std::size_t want = past_of(lane, call) + call.input_ids.front().size();
    for (auto& row : *changed.attention_mask)
      if (row.size() < want) row.insert(row.begin(), want - row.size(), 1);
    if (changed.attention_mask != call.attention_mask) ++*fired;
    return lane.call(changed);
  });
}

/// The cursor of default positions stays where it was when the cache is cropped.
Fault crop_keeps_position(const Fired& fired) {
  return remembering<Lengths>([fired](Lengths& cursor, EngineLane& lane, const Call& call) -> Reply {
    const auto* forward = std::get_if<Forward>(&call);
    if (forward == nullptr || !forward->cache || !regular(*forward)) {
      const bool ends = std::holds_alternative<Drop>(call) || std::holds_alternative<Reset>(call) || std::holds_alternative<Load>(call) || std::holds_alternative<NewCache>(call);
      if (ends) cursor.erase(std::string(*cache_of(call)));
      return lane.call(call);
    }
    std::size_t& next = cursor[*forward->cache];
    next = std::max(next, past_of(lane, *forward));
    Forward changed = *forward;
    if (!forward->position_ids && next != past_of(lane, *forward)) {
      ++*fired;
      changed.position_ids = Rows(forward->input_ids.size(), counting(next, forward->input_ids.front().size()));
    }
    Reply reply = lane.call(changed);
    if (answer_of(reply) != nullptr && forward->use_cache) next += forward->input_ids.front().size();
    return reply;
  });
}

/// Explicit positions count at prefill only; later the column number is used.
Fault pos_counts_pads(const Fired& fired) {
  return on<Forward>([fired](EngineLane& lane, const Forward& call) {
    if (!call.position_ids || past_of(lane, call) == 0) return lane.call(call);
    Forward changed = call;
    changed.position_ids.reset();
    Reply reply = lane.call(changed);
    if (answer_of(reply) == nullptr) return lane.call(call);
    ++*fired;
    return reply;
  });
}

Fault position_clamped(const Fired& fired) {
  return on<Forward>([fired](EngineLane& lane, const Forward& call) {
    Reply reply = lane.call(call);
    const auto* refusal = std::get_if<Refusal>(&reply);
    if (refusal == nullptr || refusal->code != Code::position_range) return reply;
    ++*fired;
    Forward changed = call;
    for (auto& row : *changed.position_ids) std::ranges::fill(row, 0);
    return lane.call(changed);
  });
}

/// A call refused for a token has already appended its columns.
Fault refused_call_appends(const Fired& fired) {
  return on<Forward>([fired](EngineLane& lane, const Forward& call) {
    Reply reply = lane.call(call);
    const auto* refusal = std::get_if<Refusal>(&reply);
    if (refusal == nullptr || refusal->code != Code::token_range || past_of(lane, call) == 0) return reply;
    Forward appended = call;
    for (auto& row : appended.input_ids) std::ranges::fill(row, 0);
    if (Reply answer = lane.call(appended); answer_of(answer) != nullptr) ++*fired;
    return reply;
  });
}

Fault readonly_appends(const Fired& fired) {
  return on<Forward>([fired](EngineLane& lane, const Forward& call) {
    Forward changed = call;
    changed.use_cache = true;
    if (!call.use_cache && call.cache) ++*fired;
    return lane.call(changed);
  });
}

Fault writes_caller_mask(const Fired& fired) {
  return on<Forward>([fired](EngineLane& lane, const Forward& call) {
    Reply reply = lane.call(call);
    if (!call.attention_mask || answer_of(reply) == nullptr) return reply;
    ++*fired;
    const_cast<Forward&>(call).attention_mask->front().front() ^= 1;
    return reply;
  });
}

/// After a reset the first column of the first row is still hidden if it was a pad before.
Fault reset_keeps_pads(const Fired& fired) {
  struct Pads {
    bool padded = false, kept = false;
  };
  using PadsOfCaches = std::map<std::string, Pads>;
  return remembering<PadsOfCaches>([fired](PadsOfCaches& pads, EngineLane& lane, const Call& call) -> Reply {
    if (const auto* crop = std::get_if<Crop>(&call); std::holds_alternative<Reset>(call) || (crop != nullptr && crop->length == 0)) {
      Pads& held = pads[std::string(*cache_of(call))];
      held.kept = held.kept || held.padded;
    }
    const auto* forward = std::get_if<Forward>(&call);
    if (forward == nullptr || !forward->cache || !regular(*forward)) return lane.call(call);
    Pads& held = pads[*forward->cache];
    if (past_of(lane, *forward) == 0) held.padded = forward->attention_mask && !forward->attention_mask->front().empty() && forward->attention_mask->front()[0] == 0;
    if (!held.kept) return lane.call(call);
    Forward changed = *forward;
    if (!changed.attention_mask) changed.attention_mask = Rows(forward->input_ids.size(), std::vector<std::int64_t>(past_of(lane, *forward) + forward->input_ids.front().size(), 1));
    if (!changed.attention_mask->front().empty()) changed.attention_mask->front()[0] = 0;
    if (changed.attention_mask != forward->attention_mask) ++*fired;
    return lane.call(changed);
  });
}

/// What was saved is the live cache itself.
Fault lazy_snapshot(const Fired& fired) {
  return remembering<Names>([fired](Names& live, EngineLane& lane, const Call& call) -> Reply {
    if (const auto* save = std::get_if<Save>(&call)) live[save->to] = save->cache;
    const auto* load = std::get_if<Load>(&call);
    if (load == nullptr || !live.contains(load->from)) return lane.call(call);
    const std::string& from = live.at(load->from);
    if (from == load->cache && lane.cache(from) != nullptr) {
      ++*fired;
      return of_length(lane.cache(from)->length());
    }
    return lane.call(call);
  });
}

/// Every lane but the first computes with a first token that is not its own, as if the lanes had one scratch. What a real race would
/// leave there is chance; here it is not, so that a failing trace fails again.
Fault lane_scratch(const Fired& fired) {
  Fault fault;
  fault.lane = [fired](std::size_t number) -> LaneFault {
    return [fired, number](EngineLane& lane, const Call& call) -> Reply {
      const auto* forward = std::get_if<Forward>(&call);
      if (number == 0 || forward == nullptr || !regular(*forward)) return lane.call(call);
      ++*fired;
      Forward changed = *forward;
      std::int64_t& token = changed.input_ids.front().front();
      token = token == 0 ? 1 : 0;
      return lane.call(changed);
    };
  };
  return fault;
}

Fault model_mismatch_accepted(const Fired& fired) {
  return on<Forward>([fired](EngineLane& lane, const Forward& call) {
    Forward changed = call;
    if (call.cache && call.model) changed.model.reset();
    Reply reply = lane.call(changed);
    if (call.cache && call.model && answer_of(reply) != nullptr) ++*fired;
    return reply;
  });
}

Fault crop_zero_noop(const Fired& fired) {
  return on<Crop>([fired](EngineLane& lane, const Crop& call) -> Reply {
    const Cache* cache = lane.cache(call.cache);
    if (call.length != 0 || cache == nullptr || cache->length() == 0) return lane.call(call);
    ++*fired;
    return of_length(cache->length());
  });
}

Fault reorder_skipped(const Fired& fired) {
  return on<Gather>([fired](EngineLane& lane, const Gather& call) -> Reply {
    const Cache* cache = lane.cache(call.cache);
    if (cache == nullptr || call.rows.size() != cache->batch()) return lane.call(call);
    bool identity = true;
    for (std::size_t i = 0; i < call.rows.size(); ++i) identity = identity && call.rows[i] == static_cast<std::int64_t>(i);
    if (!identity) ++*fired;
    return of_length(cache->length());
  });
}

Fault ring_rollback(const Fired& fired) {
  return on<Crop>([fired](EngineLane& lane, const Crop& call) -> Reply {
    Reply reply = lane.call(call);
    const auto* refusal = std::get_if<Refusal>(&reply);
    if (refusal == nullptr || refusal->code != Code::crop_evicted) return reply;
    ++*fired;
    return of_length(static_cast<std::size_t>(call.length));
  });
}

Fault logits_scaled(const Fired& fired) {
  return on<Forward>([fired](EngineLane& lane, const Forward& call) {
    Reply reply = lane.call(call);
    if (Answer* answer = answer_of(reply); answer != nullptr && answer->logits) {
      ++*fired;
      for (double& value : answer->logits->values) value *= 1.001;
    }
    return reply;
  });
}

/// Each call adds its own number's worth of dust, far below the bound.
Fault drifts(const Fired& fired) {
  return remembering<std::size_t>([fired](std::size_t& calls, EngineLane& lane, const Call& call) -> Reply {
    Reply reply = lane.call(call);
    if (Answer* answer = answer_of(reply); answer != nullptr && answer->logits && std::holds_alternative<Forward>(call)) {
      ++*fired;
      for (double& value : answer->logits->values) value += 1e-9 * static_cast<double>(++calls % 7);
    }
    return reply;
  });
}

Fault read_v_from_k(const Fired& fired) {
  return on<Read>([fired](EngineLane& lane, const Read& call) {
    Reply reply = lane.call(call);
    if (Answer* answer = answer_of(reply); answer != nullptr && !answer->keys->values.empty()) {
      ++*fired;
      answer->values = answer->keys;
    }
    return reply;
  });
}

/// Changes one greedy id where `applies`.
Fault other_id(const Fired& fired, bool (*applies)(const Generate&)) {
  return on<Generate>([=](EngineLane& lane, const Generate& call) {
    Reply reply = lane.call(call);
    if (Answer* answer = answer_of(reply); answer != nullptr && applies(call)) {
      ++*fired;
      std::int64_t& id = answer->ids->front().front();
      id = id == 0 ? 1 : id - 1;
    }
    return reply;
  });
}

}  // namespace

std::vector<KnownFault> call_faults() {
  return {
      {"length-of-last-chunk", "length says how many tokens came last", {"length.grows"}, length_of_last_chunk},
      {"logits-wrong-row", "`last` returns the first column of a chunk", {"length.rows"}, logits_wrong_row},
      {"pos-restart", "default positions start at 0 whatever the past", {"length.chunking"}, pos_restart},
      {"stale-logits", "tokens seen before return the previous call's logits", {"length.refeed"}, stale_logits},
      {"capacity-exact-refused", "the exact fit of a static cache is refused", {"length.limits"}, capacity_exact_refused},
      {"hide-past-ignored", "a past column hidden later is still seen", {"mask.hide_past"}, hide_past_ignored},
      {"absent-mask-other-path", "an absent mask gives other bits than a mask of ones", {"mask.absent"}, absent_mask_other_path},
      {"mask-short-accepted", "a mask shorter than P+T is padded", {"mask.refused"}, mask_short_accepted},
      {"crop-keeps-position", "the cursor of default positions survives a crop", {"position.default"}, crop_keeps_position},
      {"pos-counts-pads", "explicit positions count at prefill only", {"position.explicit"}, pos_counts_pads},
      {"position-clamped", "a position out of range is put into range", {"position.refused"}, position_clamped},
      {"refused-call-appends", "a refused call has already appended", {"isolation.refusal"}, refused_call_appends},
      {"readonly-appends", "use_cache: false appends", {"isolation.read_only"}, readonly_appends},
      {"writes-caller-mask", "the caller's mask is changed", {"isolation.caller"}, writes_caller_mask},
      {"reset-keeps-pads", "reset clears the length and keeps the pads", {"isolation.reset"}, reset_keeps_pads},
      {"lazy-snapshot", "what was saved is the live cache itself", {"isolation.saved"}, lazy_snapshot},
      {"lane-scratch", "all lanes but the first compute with a first token that is not theirs", {"isolation.threads"}, lane_scratch},
      {"model-mismatch-accepted", "a cache of another model is accepted", {"isolation.models"}, model_mismatch_accepted},
      {"crop-zero-noop", "crop to 0 keeps everything", {"cache.crop"}, crop_zero_noop},
      {"reorder-skipped", "gather does nothing", {"cache.gather"}, reorder_skipped},
      {"ring-rollback", "a rollback past evicted columns is accepted", {"window.crop"}, ring_rollback},
      {"logits-scaled", "logits are off by a thousandth", {"numerics.oracle"}, logits_scaled},
      {"drifts", "the same call twice gives other bits", {"numerics.repeatable"}, drifts},
      {"read-v-from-k", "values are read from the keys", {"numerics.kv"}, read_v_from_k},
      {"greedy-wrong-id", "the first greedy id is another", {"generate.greedy"}, [](const Fired& fired) { return other_id(fired, [](const Generate&) { return true; }); }},
      {"static-wrong-id", "generation with a static cache gives another id", {"generate.caches"},
       [](const Fired& fired) { return other_id(fired, [](const Generate& call) { return call.kind == "static"; }); }},
  };
}

}  // namespace kvproof::harness
