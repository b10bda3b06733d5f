#pragma once
#include <boost/test/unit_test.hpp>
#include <map>
#include <optional>
#include <string>

#include "harness/history/world.hpp"

// For the tests of this room only.

namespace kvproof::harness {

inline const std::map<std::string, ModelFacts>& two_models() {
  static const std::map<std::string, ModelFacts> kModels = {
      {"main", {.vocab_size = 10, .n_positions = 12, .n_layer = 2, .n_head = 2, .head_dim = 4}},
      {"second", {.vocab_size = 5, .n_positions = 6, .n_layer = 1, .n_head = 1, .head_dim = 8}}};
  return kModels;
}

/// Everything a cache stands for, in words: equal texts = equal caches, down to what each column could see.
inline std::string described(const CacheState& cache) {
  std::string text = cache.kind + " of " + cache.model + " capacity " + std::to_string(cache.capacity.value_or(0)) + " window " +
                     std::to_string(cache.window.value_or(0)) + " length " + std::to_string(cache.length) + " gone " + std::to_string(cache.gone);
  for (std::size_t b = 0; b < cache.rows.size(); ++b) {
    text += "\n  row window " + std::to_string(cache.rows[b].window.value_or(0)) + " mask ";
    for (const std::uint8_t bit : cache.mask.at(b)) text += std::to_string(bit);
    for (std::size_t q = 0; q < cache.rows[b].columns.size(); ++q) {
      const Column& column = cache.rows[b].columns[q];
      text += " | " + std::to_string(column.token) + "@" + std::to_string(column.position) + " sees ";
      for (std::size_t c = 0; c <= q; ++c) text += cache.rows[b].visible(q, c) ? '1' : '0';
    }
  }
  return text + "\n";
}

inline std::string described(const World& world) {
  std::string text;
  for (const auto& [name, cache] : world.caches()) text += "cache " + name + ": " + described(cache);
  for (const auto& [name, cache] : world.saved()) text += "saved " + name + ": " + described(cache);
  return text;
}

/// A world that checks after every refusal that nothing has changed.
struct Watched {
  World world{two_models()};

  /// The code a call is refused with; none = it was carried out.
  std::optional<Code> code(const Call& call) {
    const std::string before = described(world);
    const Outcome outcome = world.apply(call);
    if (!outcome.refusal) return std::nullopt;
    BOOST_TEST(described(world) == before);
    BOOST_TEST(!outcome.refusal->message.empty());
    BOOST_TEST(outcome.rows.empty());
    BOOST_TEST(!outcome.length.has_value());
    return outcome.refusal->code;
  }

  Outcome play(const Call& call) {
    Outcome outcome = world.apply(call);
    BOOST_REQUIRE_MESSAGE(!outcome.refusal, outcome.refusal->message);
    return outcome;
  }

  const CacheState& cache(const std::string& name) const {
    const CacheState* found = world.find(name);
    BOOST_REQUIRE(found != nullptr);
    return *found;
  }
};

inline Call new_cache(std::string name, std::string kind = "dynamic", std::optional<std::int64_t> capacity = std::nullopt,
                      std::optional<std::int64_t> window = std::nullopt, std::optional<std::string> model = std::nullopt) {
  return NewCache{std::move(name), std::move(kind), capacity, window, std::move(model)};
}

inline Forward feed(std::optional<std::string> cache, Rows ids, std::optional<Rows> mask = std::nullopt,
                    std::optional<Rows> positions = std::nullopt) {
  return {.cache = std::move(cache), .input_ids = std::move(ids), .attention_mask = std::move(mask), .position_ids = std::move(positions)};
}

}  // namespace kvproof::harness

/// A refusal's code, or "accepted", so that a failing check shows both names.
#define KVPROOF_CHECK_CODE(watched, call, want)                                                              \
  do {                                                                                                       \
    const std::optional<::kvproof::harness::Code> got_ = (watched).code(call), want_ = want;                 \
    BOOST_TEST((got_ ? ::kvproof::harness::code_name(*got_) : "accepted") ==                                 \
               (want_ ? ::kvproof::harness::code_name(*want_) : "accepted"));                                \
  } while (false)
