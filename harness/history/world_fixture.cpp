#include "harness/history/world_fixture.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/test/unit_test.hpp>

namespace kvproof::harness {
namespace {

const char* name_of(const std::optional<Code>& code) { return code ? code_name(*code).data() : "accepted"; }

}  // namespace

const std::map<std::string, ModelFacts>& two_models() {
  static const std::map<std::string, ModelFacts> kModels = {
      {"main", {.vocab_size = 10, .n_positions = 12, .n_layer = 2, .n_head = 2, .head_dim = 4}},
      {"second", {.vocab_size = 5, .n_positions = 6, .n_layer = 1, .n_head = 1, .head_dim = 8}}};
  return kModels;
}

std::string seen(const RowHistory& row, std::size_t q) {
  std::string text;
  for (std::size_t c = 0; c <= q; ++c) text += row.visible(q, c) ? '1' : '0';
  return text;
}

std::vector<std::int64_t> positions(const RowHistory& row) {
  std::vector<std::int64_t> all;
  for (const Column& column : row.columns) all.push_back(column.position);
  return all;
}

std::vector<std::int64_t> tokens(const RowHistory& row) {
  std::vector<std::int64_t> all;
  for (const Column& column : row.columns) all.push_back(column.token);
  return all;
}

std::string described(const CacheState& cache) {
  std::string text = fmt::format("{} of {} capacity {} window {} length {} gone {}\n", cache.kind, cache.model, cache.capacity.value_or(0),
                                 cache.window.value_or(0), cache.length, cache.gone);
  for (std::size_t b = 0; b < cache.rows.size(); ++b) {
    text += fmt::format("  row window {} mask {}", cache.rows[b].window.value_or(0), fmt::join(cache.mask.at(b), ""));
    for (std::size_t q = 0; q < cache.rows[b].columns.size(); ++q)
      text += fmt::format(" | {}@{} sees {}", cache.rows[b].columns[q].token, cache.rows[b].columns[q].position, seen(cache.rows[b], q));
    text += "\n";
  }
  return text;
}

std::string described(const World& world) {
  std::string text;
  for (const auto& [name, cache] : world.caches()) text += "cache " + name + ": " + described(cache);
  for (const auto& [name, cache] : world.saved()) text += "saved " + name + ": " + described(cache);
  return text;
}

std::optional<Code> Watched::code(const Call& call) {
  const std::string before = described(world);
  const Outcome outcome = world.apply(call);
  if (!outcome.refusal) return std::nullopt;
  BOOST_TEST(described(world) == before);
  BOOST_TEST(!outcome.refusal->message.empty());
  BOOST_TEST(outcome.rows.empty());
  BOOST_TEST(!outcome.length.has_value());
  return outcome.refusal->code;
}

Outcome Watched::play(const Call& call) {
  Outcome outcome = world.apply(call);
  BOOST_REQUIRE_MESSAGE(!outcome.refusal, outcome.refusal->message);
  return outcome;
}

const CacheState& Watched::cache(const std::string& name) const {
  const CacheState* found = world.find(name);
  BOOST_REQUIRE(found != nullptr);
  return *found;
}

Call new_cache(std::string name, std::string kind, std::optional<std::int64_t> capacity, std::optional<std::int64_t> window,
               std::optional<std::string> model) {
  return NewCache{std::move(name), std::move(kind), capacity, window, std::move(model)};
}

Forward feed(std::optional<std::string> cache, Rows ids, std::optional<Rows> mask, std::optional<Rows> positions) {
  return {.cache = std::move(cache), .input_ids = std::move(ids), .attention_mask = std::move(mask), .position_ids = std::move(positions)};
}

void check_code(Watched& watched, const Call& call, std::optional<Code> want, std::source_location at) {
  const std::optional<Code> got = watched.code(call);
  BOOST_CHECK_MESSAGE(got == want, at.file_name() << ":" << at.line() << ": " << name_of(got) << ", expected " << name_of(want));
}

void check_list(const std::vector<std::int64_t>& found, const std::vector<std::int64_t>& want, std::source_location at) {
  BOOST_CHECK_MESSAGE(found == want, fmt::format("{}:{}: [{}], expected [{}]", at.file_name(), at.line(), fmt::join(found, ", "), fmt::join(want, ", ")));
}

}  // namespace kvproof::harness
