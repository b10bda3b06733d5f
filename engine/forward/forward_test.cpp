#include "engine/forward/forward.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/forward/reference_for_test.hpp"

using namespace kvproof;
using namespace kvproof::test;

namespace {

std::vector<float> full_pass(const Model& model, const History& history) {
  const StepPlan plan = plan_for(history, 0, history.columns, nullptr);
  Workspace workspace;
  workspace.reserve(model.config(), history.batch * history.columns, history.columns);
  std::vector<float> logits(logits_size(plan, model.config()));
  run_step(model, plan, nullptr, workspace, logits);
  return logits;
}

/// What issue and contract demand of the engine: 0.3 of the bound that final answers are judged at.
constexpr double kEngineShare = 0.3;

}  // namespace

BOOST_AUTO_TEST_SUITE(forward)

BOOST_AUTO_TEST_CASE(a_full_pass_equals_plain_loops_in_double) {
  const History history = History::causal(small_model().config(), 2, 9, 0, 5);
  BOOST_TEST(worst_in_bounds(full_pass(small_model(), history), reference_logits(small_model(), history)) <= kEngineShare);
}

BOOST_AUTO_TEST_CASE(a_chunk_of_several_query_blocks_equals_plain_loops_in_double) {
  History history = History::causal(small_model().config(), 2, 150, 0, 6);
  for (const std::size_t column : {0U, 1U, 70U, 71U, 99U}) history.hide(1, column);
  BOOST_TEST(worst_in_bounds(full_pass(small_model(), history), reference_logits(small_model(), history)) <= kEngineShare);
}

BOOST_AUTO_TEST_CASE(any_chunks_give_the_logits_of_the_whole_for_every_kind_of_cache) {
  const Model& model = small_model();
  const std::vector<std::vector<std::size_t>> cuts{{20}, {1, 1, 18}, {7, 3, 1, 9}, {19, 1}, {5, 5, 5, 5}};
  for (const std::size_t window : {0U, 1U, 4U, 6U, 25U}) {
    History history = History::causal(model.config(), 3, 20, window, 7);
    for (const std::size_t column : {0U, 1U, 9U}) history.hide(2, column);
    const std::vector<double> want = reference_logits(model, history);
    for (const auto& cut : cuts) {
      std::vector<std::unique_ptr<KvCache>> caches;
      if (window == 0) {
        caches.push_back(make_dynamic_cache(shape_of(model)));
        caches.push_back(make_static_cache(shape_of(model), 20));
      } else {
        caches.push_back(make_static_sliding_window_cache(shape_of(model), 64, window));
      }
      for (const auto& cache : caches) {
        cache->poison(true);
        BOOST_TEST(worst_in_bounds(run_in_chunks(model, history, cut, *cache), want) <= kEngineShare);
        BOOST_TEST(cache->length() == 20U);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(what_lies_in_slots_a_query_does_not_see_never_matters) {
  const Model& model = small_model();
  const History history = History::causal(model.config(), 2, 8, 0, 8);
  History holes = history;
  for (const std::size_t column : {0U, 3U}) holes.hide(0, column);
  for (const float filler : {std::numeric_limits<float>::quiet_NaN(), 3e38F, -std::numeric_limits<float>::infinity()}) {
    auto cache = make_static_cache(shape_of(model), 8);
    run_in_chunks(model, holes, {5}, *cache);
    const std::vector<float> clean = full_pass(model, holes);
    const std::vector<float> fill(model.config().n_embd, filler);
    const KvChunk poison{fill.data(), fill.data(), 0, 0};
    // Row 1 sees columns 0 and 3, so only row 0 may be overwritten: a batch of one row is row 0.
    const std::vector<SlotWrite> hidden{{0, 0}, {0, 3}};
    for (std::size_t layer = 0; layer < model.config().n_layer; ++layer) cache->update(layer, poison, 1, hidden);
    const StepPlan plan = plan_for(holes, 5, 3, cache.get());
    Workspace workspace;
    workspace.reserve(model.config(), 6, 8);
    std::vector<float> logits(logits_size(plan, model.config()));
    run_step(model, plan, cache.get(), workspace, logits);
    const std::size_t vocab = model.config().vocab_size;
    for (std::size_t row = 0; row < 2; ++row)
      for (std::size_t i = 0; i < 3 * vocab; ++i)
        BOOST_TEST(std::abs(logits[row * 3 * vocab + i] - clean[(row * 8 + 5) * vocab + i]) <= 1e-5F);
  }
}

BOOST_AUTO_TEST_CASE(a_nan_that_one_query_sees_reaches_no_other_query_of_its_chunk) {
  const Model& model = small_model();
  History history = History::causal(model.config(), 1, 6, 0, 14);
  for (const std::size_t column : {2U, 4U}) history.visible[5 * 6 + column] = 0;  // column 5 sees neither slot 2 nor column 4
  auto cache = make_static_cache(shape_of(model), 6);
  run_in_chunks(model, history, {4}, *cache);
  const std::vector<float> fill(model.config().n_embd, std::numeric_limits<float>::quiet_NaN());
  const std::vector<SlotWrite> slot{{0, 2}};
  for (std::size_t layer = 0; layer < model.config().n_layer; ++layer) cache->update(layer, {fill.data(), fill.data(), 0, 0}, 1, slot);
  const StepPlan plan = plan_for(history, 4, 2, cache.get());
  Workspace workspace;
  workspace.reserve(model.config(), 2, 6);
  std::vector<float> logits(logits_size(plan, model.config()));
  run_step(model, plan, cache.get(), workspace, logits);
  const std::vector<double> want = reference_logits(model, history);
  const std::size_t vocab = model.config().vocab_size;
  BOOST_TEST(std::isnan(logits.front()));
  BOOST_TEST(worst_in_bounds({logits.end() - static_cast<std::ptrdiff_t>(vocab), logits.end()},
                             {want.end() - static_cast<std::ptrdiff_t>(vocab), want.end()}) <= kEngineShare);
}

BOOST_AUTO_TEST_CASE(a_query_that_sees_nothing_gets_finite_logits) {
  History history = History::causal(small_model().config(), 1, 4, 0, 9);
  std::ranges::fill(history.visible, std::uint8_t{0});
  const std::vector<float> logits = full_pass(small_model(), history);
  BOOST_TEST(worst_in_bounds(logits, reference_logits(small_model(), history)) <= kEngineShare);
}

BOOST_AUTO_TEST_CASE(last_and_none_compute_the_same_state_and_only_the_rows_asked_for) {
  const Model& model = small_model();
  const History history = History::causal(model.config(), 2, 6, 0, 10);
  const std::vector<float> all = full_pass(model, history);
  for (const LogitsWanted wanted : {LogitsWanted::last, LogitsWanted::none}) {
    auto cache = make_dynamic_cache(shape_of(model));
    StepPlan plan = plan_for(history, 0, 6, cache.get());
    plan.logits = wanted;
    cache->reserve(2, 6);
    Workspace workspace;
    workspace.reserve(model.config(), 12, 6);
    std::vector<float> logits(logits_size(plan, model.config()));
    const std::size_t vocab = model.config().vocab_size;
    BOOST_TEST(logits.size() == (wanted == LogitsWanted::last ? 2 * vocab : 0U));
    run_step(model, plan, cache.get(), workspace, logits);
    for (std::size_t i = 0; i < logits.size(); ++i)
      BOOST_TEST(std::abs(logits[i] - all[(i / vocab * 6 + 5) * vocab + i % vocab]) <= 1e-5F);
    auto other = make_dynamic_cache(shape_of(model));
    run_in_chunks(model, history, {6}, *other);
    for (std::size_t layer = 0; layer < model.config().n_layer; ++layer) {
      BOOST_TEST(cache->read(layer).keys == other->read(layer).keys, boost::test_tools::per_element());
      BOOST_TEST(cache->read(layer).values == other->read(layer).values, boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_plan_without_writes_leaves_the_cache_alone) {
  const Model& model = small_model();
  const History history = History::causal(model.config(), 2, 6, 0, 11);
  auto cache = make_static_cache(shape_of(model), 8);
  run_in_chunks(model, history, {4}, *cache);
  const KvArrays before = cache->read(1);
  StepPlan plan = plan_for(history, 4, 2, cache.get());
  plan.writes.clear();
  plan.new_length = plan.past_length;
  Workspace workspace;
  workspace.reserve(model.config(), 4, 6);
  std::vector<float> logits(logits_size(plan, model.config()));
  run_step(model, plan, cache.get(), workspace, logits);
  BOOST_TEST(cache->length() == 4U);
  BOOST_TEST(cache->read(1).keys == before.keys, boost::test_tools::per_element());
  BOOST_TEST(cache->read(1).values == before.values, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_plan_that_only_reads_leaves_an_empty_cache_without_a_batch) {
  const Model& model = small_model();
  const History history = History::causal(model.config(), 2, 3, 0, 15);
  auto cache = make_static_cache(shape_of(model), 8);
  const StepPlan plan = plan_for(history, 0, 3, nullptr);
  Workspace workspace;
  workspace.reserve(model.config(), 6, 3);
  std::vector<float> logits(logits_size(plan, model.config()));
  run_step(model, plan, cache.get(), workspace, logits);
  BOOST_TEST(cache->batch() == 0U);
  BOOST_TEST(cache->bytes_held() == 0U);
  BOOST_TEST(worst_in_bounds(logits, reference_logits(model, history)) <= kEngineShare);
}

BOOST_AUTO_TEST_CASE(settings_of_the_config_are_honoured) {
  const std::vector<nlohmann::json> settings{{{"scale_attn_weights", false}},
                                             {{"scale_attn_by_inverse_layer_idx", true}, {"n_layer", 4}},
                                             {{"reorder_and_upcast_attn", true}, {"layer_norm_epsilon", 1e-3}},
                                             {{"n_embd", 35}, {"n_head", 5}, {"n_inner", 50}, {"vocab_size", 29}},
                                             {{"n_embd", 160}, {"n_head", 2}, {"vocab_size", 300}, {"n_layer", 4}, {"initializer_range", 0.1}}};
  std::uint64_t seed = 20;
  for (const auto& changes : settings) {
    const auto model = made_model(changes, ++seed);
    const History history = History::causal(model->config(), 2, 11, 0, seed);
    const double worst = worst_in_bounds(full_pass(*model, history), reference_logits(*model, history));
    BOOST_TEST_MESSAGE(changes.dump() << ": " << worst << " of the bound");
    BOOST_TEST(worst <= kEngineShare);
  }
}

BOOST_AUTO_TEST_SUITE_END()
