#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <cstdlib>

#include "engine/base/seed.hpp"
#include "harness/laws/law.hpp"
#include "harness/laws/probe_models.hpp"
#include "harness/laws/situations.hpp"

using namespace kvproof;
using namespace kvproof::harness;

BOOST_AUTO_TEST_SUITE(situations_reached)

namespace {

constexpr std::size_t kCases = 80;  // a law

/// A backend that can do all that the contract speaks of.
const Capabilities& everything() {
  static const Capabilities kAll = [] {
    Capabilities all;
    all.kinds = {"dynamic", "static", "static_sliding_window"};
    all.ops = {"new", "forward", "clone", "crop", "gather", "reset", "drop", "length", "read", "save", "load", "generate"};
    all.threads = all.poison = true;
    return all;
  }();
  return kAll;
}

Situations of_case(const Law& law, std::uint64_t seed, std::size_t index) {
  const std::uint64_t case_seed = derived_seed(seed, fmt::format("{} {}", law.id, index));
  std::map<std::string, ModelFacts> models;
  for (const auto& [name, number] : probe_choice(case_seed, law.models)) models[name] = facts_of(probe_models()[number]);
  const LawCase made = law.generate({models, everything(), case_seed, index});
  return situations_of(made.trace, models, made.options);
}

/// How many of a seed's cases show each situation.
std::vector<std::size_t> counts_of_seed(std::uint64_t seed) {
  std::vector<std::size_t> counts(kSituationCount);
  for (const Law& law : laws())
    for (std::size_t index = 0; index < kCases; ++index) {
      const Situations situations = of_case(law, seed, index);
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
