#include "harness/backends/engine_lane.hpp"

namespace kvproof::harness {
namespace {

Refusal refusal(Code code, std::string message) { return {code, std::move(message)}; }

Refusal refusal_of(const Refused& refused) {
  return {code_from_name(refusal_code_name(refused.code())).value_or(Code::other), refused.what()};
}

std::optional<CacheKind> kind_of(const std::string& name) {
  if (name == "dynamic") return CacheKind::dynamic;
  if (name == "static") return CacheKind::fixed;
  if (name == "static_sliding_window") return CacheKind::sliding_window;
  return std::nullopt;
}

std::optional<LogitsWanted> wanted_of(const std::string& name) {
  if (name == "all") return LogitsWanted::all;
  if (name == "last") return LogitsWanted::last;
  if (name == "none") return LogitsWanted::none;
  return std::nullopt;
}

Tensor widened(std::vector<std::size_t> shape, const std::vector<float>& values) { return {std::move(shape), {values.begin(), values.end()}}; }

Answer holds(const Cache& cache) {
  Answer answer;
  answer.length = static_cast<std::int64_t>(cache.length());
  return answer;
}

Refusal unknown(const std::string& name) { return refusal(Code::unknown_cache, name); }

}  // namespace

template <typename Act>
Reply EngineLane::with(const std::string& name, const Act& act) {
  Owned* owned = find(name);
  if (owned == nullptr) return unknown(name);
  act(*owned);
  return holds(owned->cache);
}

Reply EngineLane::call(const Call& call) {
  try {
    return std::visit([this](const auto& each) { return answer(each); }, call);
  } catch (const Refused& refused) {
    return refusal_of(refused);
  }
}

Reply EngineLane::answer(const NewCache& call) {
  if (caches_.contains(call.cache)) return refusal(Code::cache_exists, call.cache);
  const auto kind = kind_of(call.kind);
  if (!kind) return refusal(Code::bad_argument, "unknown kind " + call.kind);
  const Session& session = sessions_.at(call.model.value_or("main"));
  return keep(call.cache, {&session, session.make_cache({*kind, call.capacity, call.window})});
}

Reply EngineLane::answer(const Forward& call) {
  Owned* owned = call.cache ? find(*call.cache) : nullptr;
  if (call.cache && owned == nullptr) return unknown(*call.cache);
  const Session& session = call.model || owned == nullptr ? sessions_.at(call.model.value_or("main")) : *owned->session;
  if (owned != nullptr && &session != owned->session) return refusal(Code::model_mismatch, *call.cache);
  const auto wanted = wanted_of(call.logits);
  if (!wanted) return refusal(Code::bad_argument, "unknown logits " + call.logits);
  const Logits logits = session.forward(owned != nullptr ? &owned->cache : nullptr,
                                        {call.input_ids, call.attention_mask, call.position_ids, call.use_cache, *wanted});
  Answer answer;
  if (owned != nullptr) answer = holds(owned->cache);
  if (*wanted != LogitsWanted::none) answer.logits = widened({logits.batch, logits.columns, logits.vocab_size}, logits.values);
  return answer;
}

Reply EngineLane::answer(const Clone& call) {
  const Owned* from = find(call.from);
  if (from == nullptr) return unknown(call.from);
  if (caches_.contains(call.cache)) return refusal(Code::cache_exists, call.cache);
  return keep(call.cache, {from->session, from->cache.clone()});
}

Reply EngineLane::answer(const Crop& call) {
  return with(call.cache, [&](Owned& owned) { owned.cache.crop(call.length); });
}

Reply EngineLane::answer(const Gather& call) {
  return with(call.cache, [&](Owned& owned) { owned.cache.gather(call.rows); });
}

Reply EngineLane::answer(const Reset& call) {
  return with(call.cache, [](Owned& owned) { owned.cache.reset(); });
}

Reply EngineLane::answer(const Length& call) {
  return with(call.cache, [](Owned&) {});
}

Reply EngineLane::answer(const Save& call) {
  return with(call.cache, [&](Owned& owned) { saved_[call.to] = {owned.session, owned.cache.save()}; });
}

Reply EngineLane::answer(const Drop& call) {
  if (caches_.erase(call.cache) == 0) return unknown(call.cache);
  return Answer{};
}

Reply EngineLane::answer(const Read& call) {
  const Owned* owned = find(call.cache);
  if (owned == nullptr) return unknown(call.cache);
  const KvArrays arrays = owned->cache.read(call.layer);
  const Config& config = owned->session->model().config();
  const std::vector<std::size_t> shape{arrays.batch, config.n_head, arrays.columns, config.head_dim()};
  Answer answer = holds(owned->cache);
  answer.keys = widened(shape, arrays.keys);
  answer.values = widened(shape, arrays.values);
  return answer;
}

Reply EngineLane::answer(const Load& call) {
  const auto saved = saved_.find(call.from);
  if (saved == saved_.end()) return refusal(Code::name_unknown, call.from);
  const Session& session = *saved->second.session;
  Owned loaded{&session, session.load(saved->second.bytes)};
  caches_.erase(call.cache);
  return keep(call.cache, std::move(loaded));
}

Reply EngineLane::answer(const Generate& call) {
  const auto kind = call.kind ? kind_of(*call.kind) : std::nullopt;
  if (call.kind && !kind) return refusal(Code::bad_argument, "unknown kind " + *call.kind);
  if (!call.kind && (call.capacity || call.window)) return refusal(Code::bad_argument, "capacity or window without kind");
  GenerateInput input;
  if (kind) input.cache = CacheOptions{*kind, call.capacity, call.window};
  input.input_ids = call.input_ids;
  input.attention_mask = call.attention_mask;
  input.max_new_tokens = call.max_new_tokens;
  input.eos_token_id = call.eos_token_id;
  Answer answer;
  answer.ids = sessions_.at(call.model.value_or("main")).generate(input);
  return answer;
}

Reply EngineLane::keep(const std::string& name, Owned owned) {
  owned.cache.poison(poison_);
  return holds(caches_.emplace(name, std::move(owned)).first->second.cache);
}

EngineLane::Owned* EngineLane::find(const std::string& name) {
  const auto found = caches_.find(name);
  return found == caches_.end() ? nullptr : &found->second;
}

Cache* EngineLane::cache(const std::string& name) {
  Owned* owned = find(name);
  return owned == nullptr ? nullptr : &owned->cache;
}

std::vector<std::string> EngineLane::names() const {
  std::vector<std::string> names;
  for (const auto& [name, owned] : caches_) names.push_back(name);
  return names;
}

}  // namespace kvproof::harness
