#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <cstdlib>

#include "harness/laws/law_case_fixture.hpp"
#include "harness/laws/situations.hpp"

using namespace kvproof::harness;

BOOST_AUTO_TEST_SUITE(situations_reached)

namespace {

constexpr std::size_t kCases = 80;  // a law

/// How many of a seed's cases show each situation.
std::vector<std::size_t> counts_of_seed(std::uint64_t seed) {
  std::vector<std::size_t> counts(kSituationCount);
  for (const Law& law : laws())
    for (std::size_t index = 0; index < kCases; ++index) {
      const MadeCase each = made_case(law, seed, index);
      const Situations situations = situations_of(each.made.trace, each.models, each.made.options);
      for (std::size_t s = 0; s < kSituationCount; ++s) counts[s] += situations[s] ? 1 : 0;
    }
  return counts;
}

}  // namespace

/// KVPROOF_SHOW_SITUATIONS=1 prints the counts.
BOOST_AUTO_TEST_CASE(the_generators_reach_every_situation_with_every_seed) {
  const bool show = std::getenv("KVPROOF_SHOW_SITUATIONS") != nullptr;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const std::vector<std::size_t> counts = counts_of_seed(seed);
    for (std::size_t s = 0; s < kSituationCount; ++s) {
      const std::string name(situation_name(static_cast<Situation>(s)));
      if (show) fmt::print("seed {} {:6} {}\n", seed, counts[s], name);
      BOOST_CHECK_MESSAGE(counts[s] != 0, fmt::format("seed {}: no trace of any law reaches {}", seed, name));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
