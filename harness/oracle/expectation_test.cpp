#include "harness/oracle/expectation.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/base/error.hpp"
#include "engine/base/seed.hpp"
#include "engine/safetensors/test_files.hpp"
#include "engine/weights/portable_model.hpp"

namespace {

using namespace kvproof::harness;
using kvproof::Random;
using kvproof::Rows;
namespace fs = std::filesystem;

/// Two small models of different shape.
struct TwoModels {
  kvproof::test::ScratchFolder folder{"expectation"};
  Oracles oracles;

  TwoModels() {
    make("main", {{"vocab_size", 17}, {"n_positions", 24}, {"n_embd", 12}, {"n_head", 3}, {"n_layer", 2}, {"initializer_range", 0.15}});
    make("second", {{"vocab_size", 11}, {"n_positions", 9}, {"n_embd", 8}, {"n_head", 2}, {"n_layer", 1}, {"initializer_range", 0.15}});
  }

  void make(const std::string& name, const nlohmann::json& config) {
    kvproof::write_portable_model(config, 3, folder / name);
    oracles[name] = Oracle::open(folder / name);
  }
};

Trace trace_of(const std::vector<Call>& calls) {
  Trace trace;
  for (const Call& call : calls) trace.push_back({call, std::nullopt, std::nullopt, 0});
  return trace;
}

/// The same bits in the same shapes.
bool same(const std::optional<Tensor>& a, const std::optional<Tensor>& b) {
  if (a.has_value() != b.has_value()) return false;
  return !a || (a->shape == b->shape && a->values.size() == b->values.size() &&
                (a->values.empty() || std::memcmp(a->values.data(), b->values.data(), a->values.size() * sizeof(double)) == 0));
}

bool same(const std::optional<ExpectedNumbers>& a, const std::optional<ExpectedNumbers>& b) {
  if (a.has_value() != b.has_value()) return false;
  return !a || (a->compared == b->compared && same(a->logits, b->logits) && same(a->keys, b->keys) && same(a->values, b->values) &&
                same(a->logits_noise, b->logits_noise) && same(a->keys_noise, b->keys_noise) && same(a->values_noise, b->values_noise));
}

/// Random calls that the contract mostly accepts: the state says what fits.
class Scribbler {
 public:
  Scribbler(std::uint64_t seed, const std::map<std::string, ModelFacts>& models) : random_(seed), world_(models) {}

  Trace write(std::size_t steps) {
    Trace trace;
    while (trace.size() < steps) {
      const Call call = next();
      (void)world_.apply(call);
      trace.push_back({call, std::nullopt, std::nullopt, 0});
    }
    return trace;
  }

 private:
  Call next() {
    const std::string name(1, static_cast<char>('a' + random_.below(3))), other(1, static_cast<char>('a' + random_.below(3)));
    const CacheState* cache = world_.find(name);
    if (cache == nullptr) return random_.chance(70) ? fresh(name) : Call(Clone{name, other});
    if (random_.chance(50)) return feed(name, *cache);
    const auto length = static_cast<std::int64_t>(cache->length), rows = static_cast<std::int64_t>(cache->rows.size());
    switch (random_.below(8)) {
      case 0: return Crop{name, random_.between(std::max<std::int64_t>(0, length - 3), length)};
      case 1: return Gather{name, {random_.between(0, std::max<std::int64_t>(0, rows - 1)), 0}};
      case 2: return Read{name, random_.between(0, 1)};
      case 3: return Save{name, other};
      case 4: return Load{name, other};
      case 5: return Drop{name};
      case 6: return random_.chance(20) ? Call(Reset{name}) : Call(Length{name});
      default: return full_pass_call();
    }
  }

  Call fresh(const std::string& name) {
    const char* const kinds[] = {"dynamic", "static", "static_sliding_window"};
    NewCache call{name, kinds[random_.below(3)], std::nullopt, std::nullopt, std::nullopt};
    if (call.kind != "dynamic") call.capacity = random_.between(4, 20);
    if (call.kind == "static_sliding_window") call.window = random_.between(1, 6);
    if (random_.chance(25)) call.model = "second";
    return call;
  }

  Rows ids(std::size_t batch, std::size_t columns) {
    Rows rows(batch, std::vector<std::int64_t>(columns));
    for (auto& row : rows)
      for (auto& id : row) id = random_.between(0, 10);
    return rows;
  }

  Call feed(const std::string& name, const CacheState& cache) {
    Forward call{.cache = name};
    const std::size_t batch = cache.length == 0 ? 1 + random_.below(3) : cache.rows.size(), columns = 1 + random_.below(4);
    call.input_ids = ids(batch, columns);
    call.attention_mask = Rows(batch, std::vector<std::int64_t>(cache.length + columns, 1));
    for (std::size_t b = 0; b < batch; ++b)
      for (std::size_t c = 0; c < cache.length + columns; ++c) {
        const bool was_hidden = c < cache.length && cache.mask[b][c] == 0;
        if (was_hidden || random_.chance(12)) (*call.attention_mask)[b][c] = 0;
      }
    if (random_.chance(50)) {
      call.position_ids = Rows(batch, std::vector<std::int64_t>(columns));
      for (auto& row : *call.position_ids)
        for (auto& position : row) position = random_.between(0, 8);
    }
    call.use_cache = !random_.chance(15);
    call.logits = random_.chance(60) ? "all" : random_.chance(50) ? "last" : "none";
    return call;
  }

  Call full_pass_call() {
    const std::size_t batch = 1 + random_.below(2), columns = 1 + random_.below(6);
    return Forward{.cache = std::nullopt, .input_ids = ids(batch, columns)};
  }

  Random random_;
  World world_;
};

BOOST_FIXTURE_TEST_SUITE(expectation, TwoModels)

BOOST_AUTO_TEST_CASE(once_per_final_history_gives_the_bits_of_every_step_anew) {
  std::size_t with_numbers = 0, refused = 0, reads = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Trace trace = Scribbler(seed, facts_of(oracles)).write(30);
    const auto once = expect_from_oracle(trace, oracles, true), anew = expect_from_oracle(trace, oracles, true, Recompute::at_every_step);
    for (std::size_t step = 0; step < trace.size(); ++step) {
      BOOST_TEST(same(once[step].numbers, anew[step].numbers), "seed " << seed << " step " << step);
      with_numbers += once[step].numbers ? 1U : 0U;
      refused += once[step].outcome.refusal ? 1U : 0U;
      reads += once[step].numbers && once[step].numbers->keys ? 1U : 0U;
    }
  }
  BOOST_TEST_MESSAGE(with_numbers << " steps with numbers, " << reads << " reads, " << refused << " refused");
  BOOST_TEST(with_numbers > 600U);
  BOOST_TEST(reads > 50U);
}

BOOST_AUTO_TEST_CASE(the_numbers_of_one_call_are_those_of_its_step) {
  const Trace trace = Scribbler(7, facts_of(oracles)).write(40);
  const auto expectations = expect_from_oracle(trace, oracles, false);
  for (std::size_t step = 0; step < trace.size(); ++step)
    if (expectations[step].numbers) BOOST_TEST(same(numbers_of(trace[step].call, expectations[step].outcome, oracles), expectations[step].numbers));
}

BOOST_AUTO_TEST_CASE(shapes_alone_are_those_of_the_numbers) {
  const Trace trace = Scribbler(11, facts_of(oracles)).write(60);
  const auto numbers = expect_from_oracle(trace, oracles, false), shapes = expect_shapes(trace, facts_of(oracles));
  BOOST_REQUIRE(shapes.size() == numbers.size());
  for (std::size_t step = 0; step < trace.size(); ++step) {
    const auto &want = numbers[step].numbers, &got = shapes[step].numbers;
    BOOST_REQUIRE(want.has_value() == got.has_value());
    if (!want) continue;
    BOOST_TEST(got->compared.empty());
    for (const auto& [whole, shape] : {std::pair(&want->logits, &got->logits), std::pair(&want->keys, &got->keys), std::pair(&want->values, &got->values)}) {
      BOOST_REQUIRE(whole->has_value() == shape->has_value());
      if (*whole) BOOST_TEST(((*whole)->shape == (*shape)->shape && (*shape)->values.empty()));
    }
  }
}

BOOST_AUTO_TEST_CASE(shapes_follow_what_was_asked_for) {
  const auto steps = expect_from_oracle(
      trace_of({NewCache{"a", "dynamic", {}, {}, {}}, Read{"a", 1}, Forward{.cache = "a", .input_ids = {{1, 2, 3}, {4, 5, 6}}},
                Forward{.cache = "a", .input_ids = {{1, 2}, {3, 4}}, .logits = "last"}, Forward{.cache = "a", .input_ids = {{1}, {3}}, .logits = "none"},
                Read{"a", 1}, Length{"a"}}), oracles, false);
  using Shape = std::vector<std::size_t>;
  BOOST_TEST(!steps[0].numbers.has_value());
  BOOST_TEST(steps[1].numbers->keys->shape == (Shape{0, 3, 0, 4}), boost::test_tools::per_element());
  BOOST_TEST(steps[1].numbers->values->values.empty());
  BOOST_TEST(steps[2].numbers->logits->shape == (Shape{2, 3, 17}), boost::test_tools::per_element());
  BOOST_TEST(steps[3].numbers->logits->shape == (Shape{2, 1, 17}), boost::test_tools::per_element());
  BOOST_TEST(!steps[4].numbers.has_value());
  BOOST_TEST(steps[5].numbers->keys->shape == (Shape{2, 3, 6, 4}), boost::test_tools::per_element());
  BOOST_TEST(!steps[5].numbers->logits.has_value());
  BOOST_TEST(!steps[6].numbers.has_value());
  for (const auto& step : steps)
    if (step.numbers) BOOST_TEST((!step.numbers->logits_noise && !step.numbers->keys_noise && !step.numbers->values_noise));
}

BOOST_AUTO_TEST_CASE(a_hidden_query_does_not_count_even_as_the_last_column) {
  const auto steps = expect_from_oracle(trace_of({Forward{.input_ids = {{1, 2, 3}, {4, 5, 6}}, .attention_mask = Rows{{0, 1, 1}, {1, 1, 0}}},
                                                  Forward{.input_ids = {{1, 2}, {4, 5}}, .attention_mask = Rows{{1, 0}, {1, 1}}, .logits = "last"}}),
                                        oracles, false);
  using Flags = std::vector<std::uint8_t>;
  BOOST_TEST(steps[0].numbers->compared == (Flags{0, 1, 1, 1, 1, 0}), boost::test_tools::per_element());
  BOOST_TEST(steps[1].numbers->compared == (Flags{0, 1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_read_leaves_out_what_is_hidden_now_and_starts_behind_what_is_gone) {
  const auto steps = expect_from_oracle(
      trace_of({NewCache{"w", "static_sliding_window", 9, 3, {}}, Forward{.cache = "w", .input_ids = {{1, 2, 3, 4}}},
                Forward{.cache = "w", .input_ids = {{5}}, .attention_mask = Rows{{1, 1, 1, 0, 1}}}, Read{"w", 0}}), oracles, false);
  BOOST_TEST(steps[3].numbers->keys->shape == (std::vector<std::size_t>{1, 3, 3, 4}), boost::test_tools::per_element());
  BOOST_TEST(steps[3].numbers->compared == (std::vector<std::uint8_t>{1, 0, 1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(keys_lie_by_row_head_and_column) {
  const auto steps = expect_from_oracle(
      trace_of({NewCache{"a", "dynamic", {}, {}, {}}, Forward{.cache = "a", .input_ids = {{1, 2}, {3, 4}}}, Read{"a", 1}}), oracles, false);
  const RowHistory& row = steps[2].outcome.rows[1];
  const auto pass = oracles.at("main")->truth(row, {std::vector<std::uint8_t>(2, 0), true});
  for (std::size_t h = 0; h < 3; ++h)
    for (std::size_t s = 0; s < 2; ++s)
      for (std::size_t d = 0; d < 4; ++d) {
        BOOST_TEST(steps[2].numbers->keys->values[((3 + h) * 2 + s) * 4 + d] == pass.keys[1][s * 12 + h * 4 + d]);
        BOOST_TEST(steps[2].numbers->values->values[((3 + h) * 2 + s) * 4 + d] == pass.values[1][s * 12 + h * 4 + d]);
      }
}

BOOST_AUTO_TEST_CASE(noise_is_the_distance_of_the_same_loops_in_float) {
  const Trace trace = trace_of({NewCache{"a", "dynamic", {}, {}, {}}, Forward{.cache = "a", .input_ids = {{1, 2, 3}}}, Read{"a", 1}});
  const auto steps = expect_from_oracle(trace, oracles, true);
  const Wanted wanted{{1, 1, 1}, true};
  const auto truth = oracles.at("main")->truth(steps[1].outcome.rows[0], wanted);
  const auto in_float = oracles.at("main")->in_float(steps[1].outcome.rows[0], wanted);
  double largest = 0;
  for (std::size_t q = 0; q < 3; ++q)
    for (std::size_t v = 0; v < 17; ++v) {
      const double noise = steps[1].numbers->logits_noise->values[q * 17 + v];
      BOOST_TEST(noise == std::abs(double{in_float.logits[q][v]} - truth.logits[q][v]));
      largest = std::max(largest, noise);
    }
  BOOST_TEST(largest > 0.0);
  BOOST_TEST(largest < 1e-5);
  BOOST_TEST(steps[2].numbers->keys_noise->values[0] == std::abs(double{in_float.keys[1][0]} - truth.keys[1][0]));
  BOOST_TEST(steps[2].numbers->values_noise->shape == steps[2].numbers->values->shape, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(noise_is_added_to_what_a_golden_recorded) {
  const Trace trace = trace_of({Forward{.input_ids = {{1, 2, 3}}}});
  auto plain = expect_from_oracle(trace, oracles, false);
  add_noise(plain, trace, oracles);
  BOOST_TEST(same(plain[0].numbers, expect_from_oracle(trace, oracles, true)[0].numbers));
}

BOOST_AUTO_TEST_CASE(a_window_wider_than_the_history_changes_nothing) {
  const auto steps = expect_from_oracle(trace_of({NewCache{"w", "static_sliding_window", 9, 9, {}}, Forward{.cache = "w", .input_ids = {{1, 2, 3}}},
                                                  Forward{.input_ids = {{1, 2, 3}}}}), oracles, false);
  BOOST_TEST(same(steps[1].numbers->logits, steps[2].numbers->logits));
}

BOOST_AUTO_TEST_CASE(lanes_have_caches_and_saved_names_of_their_own) {
  Trace trace = trace_of({NewCache{"a", "dynamic", {}, {}, {}}, NewCache{"a", "dynamic", {}, {}, {}}, Save{"a", "s"}, Load{"b", "s"}, Forward{.cache = "a", .input_ids = {{1}}},
                          Forward{.cache = "a", .input_ids = {{1, 2}}}, Length{"a"}});
  for (const std::size_t step : {1U, 3U, 5U}) trace[step].lane = 1;
  const auto outcomes = outcomes_of(trace, facts_of(oracles), "t", false);
  BOOST_TEST(!outcomes[1].refusal.has_value());
  BOOST_TEST((outcomes[3].refusal->code == Code::name_unknown));
  BOOST_TEST(outcomes[5].length.value() == 2);
  BOOST_TEST(outcomes[6].length.value() == 1);
}

BOOST_AUTO_TEST_SUITE_END()

std::string complaint(const Trace& trace, const Oracles& oracles, bool absent_means_accepted) {
  try {
    (void)outcomes_of(trace, facts_of(oracles), "f", absent_means_accepted);
    return "";
  } catch (const kvproof::DataError& error) {
    return error.what();
  }
}

BOOST_FIXTURE_TEST_SUITE(what_a_file_says, TwoModels)

// GF15, TR15
BOOST_AUTO_TEST_CASE(a_recorded_code_must_be_the_contracts) {
  Trace trace = trace_of({Forward{.input_ids = {{99}}}});
  BOOST_TEST(complaint(trace, oracles, false) == "");
  BOOST_TEST(complaint(trace, oracles, true).starts_with("f: step 0: the file says accepted, expected token_range"));
  trace[0].error = Code::token_range;
  BOOST_TEST(complaint(trace, oracles, true) == "");
  trace[0].error = Code::mask_length;
  BOOST_TEST(complaint(trace, oracles, false).starts_with("f: step 0: the file says mask_length, expected token_range"));
  trace[0].call = Forward{.input_ids = {{1}}};
  BOOST_TEST(complaint(trace, oracles, false).starts_with("f: step 0: the file says mask_length, expected accepted"));
}

// GF15, TR15
BOOST_AUTO_TEST_CASE(an_expected_length_must_be_the_contracts) {
  Trace trace = trace_of({NewCache{"a", "dynamic", {}, {}, {}}, Length{"a"}, Length{"x"}});
  trace[1].expect = 0;
  trace[2].expect = 7;  // refused: there is no length to disagree with
  BOOST_TEST(complaint(trace, oracles, false) == "");
  trace[1].expect = 1;
  BOOST_TEST(complaint(trace, oracles, false) == "f: step 1: the file says length 1, expected 0 (docs/contract.md)");
}

GoldenFile golden_of(const TwoModels& models, const Trace& trace) {
  GoldenFile golden;
  golden.where = "g";
  golden.trace = trace;
  const auto expectations = expect_from_oracle(trace, models.oracles, false);
  for (std::size_t step = 0; step < trace.size(); ++step)
    if (const auto& numbers = expectations[step].numbers)
      golden.recorded[step] = {numbers->logits, numbers->keys, numbers->values, numbers->compared, std::nullopt};
  return golden;
}

std::string complaint(const GoldenFile& golden, const TwoModels& models) {
  try {
    (void)expect_from_golden(golden, models.oracles.at("main")->facts());
    return "";
  } catch (const kvproof::DataError& error) {
    return error.what();
  }
}

BOOST_AUTO_TEST_CASE(a_golden_gives_back_what_it_recorded) {
  const GoldenFile golden = golden_of(*this, trace_of({Forward{.input_ids = {{1, 2}}, .attention_mask = Rows{{0, 1}}}}));
  const auto expectations = expect_from_golden(golden, oracles.at("main")->facts());
  BOOST_TEST(same(expectations[0].numbers->logits, golden.recorded.at(0).logits));
  BOOST_TEST(expectations[0].numbers->compared == golden.recorded.at(0).compared, boost::test_tools::per_element());
}

// GF17
BOOST_AUTO_TEST_CASE(a_hidden_row_may_not_count_and_a_visible_one_need_not) {
  GoldenFile golden = golden_of(*this, trace_of({Forward{.input_ids = {{1, 2}}, .attention_mask = Rows{{0, 1}}}}));
  golden.recorded[0].compared = {0, 0};
  BOOST_TEST(complaint(golden, *this) == "");
  golden.recorded[0].compared = {1, 1};
  BOOST_TEST(complaint(golden, *this) == "g: step 0: compared[0] is 1, expected 0, since that column is hidden (docs/contract.md)");
}

// GF16
BOOST_AUTO_TEST_CASE(recorded_keys_of_another_length_are_refused) {
  GoldenFile golden = golden_of(*this, trace_of({NewCache{"a", "dynamic", {}, {}, {}}, Forward{.cache = "a", .input_ids = {{1, 2}}}, Read{"a", 0}}));
  BOOST_TEST(complaint(golden, *this) == "");
  golden.trace[1].call = Forward{.cache = "a", .input_ids = {{1}}};
  golden.recorded.erase(1);
  BOOST_TEST(complaint(golden, *this) == "g: step 2: recorded numbers of shape [1, 3, 2, 4], expected [1, 3, 1, 4], which the contract makes of the trace");
}

// GF18
BOOST_AUTO_TEST_CASE(a_golden_speaks_of_one_model) {
  GoldenFile golden = golden_of(*this, trace_of({NewCache{"a", "dynamic", {}, {}, "second"}}));
  BOOST_TEST(complaint(golden, *this).find("model \"second\"") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
