#include <cblas.h>

#include <boost/test/unit_test.hpp>

#include "engine/forward/counting_new_for_test.hpp"
#include "engine/forward/forward.hpp"
#include "engine/forward/reference_for_test.hpp"

using namespace kvproof;
using namespace kvproof::test;

BOOST_AUTO_TEST_SUITE(allocation)

BOOST_AUTO_TEST_CASE(the_counter_counts) {
  const std::size_t before = allocations();
  AlignedFloats floats;
  floats.reserve(100);
  BOOST_TEST(allocations() == before + 1);
}

BOOST_AUTO_TEST_CASE(a_step_on_a_static_cache_allocates_nothing) {
  const Model& model = small_model();
  const History history = History::causal(model.config(), 3, 80, 0, 12);
  auto cache = make_static_cache(shape_of(model), 80);
  cache->reserve(3, 80);
  Workspace workspace;
  workspace.reserve(model.config(), 3 * 70, 80);
  std::vector<float> logits(3 * 80 * model.config().vocab_size);
  std::size_t first = 0;
  for (const std::size_t count : {70U, 1U, 8U, 1U}) {
    const StepPlan plan = plan_for(history, first, count, cache.get());
    const std::size_t before = allocations();
    cache->reserve(3, count);
    workspace.reserve(model.config(), 3 * count, plan.read_slot.size() + count);
    run_step(model, plan, cache.get(), workspace, logits);
    BOOST_TEST(allocations() == before);
    first += count;
  }
}

BOOST_AUTO_TEST_CASE(a_step_leaves_the_threads_of_openblas_as_the_program_set_them) {
  const Model& model = small_model();
  const History history = History::causal(model.config(), 2, 100, 0, 13);
  const int set_by_the_library = openblas_get_num_threads();
  for (const int threads : {1, set_by_the_library}) {
    openblas_set_num_threads(threads);
    auto cache = make_dynamic_cache(shape_of(model));
    run_in_chunks(model, history, {99, 1}, *cache);
    BOOST_TEST(openblas_get_num_threads() == threads);
  }
}

BOOST_AUTO_TEST_SUITE_END()
