#pragma once
#include <fmt/format.h>

#include "engine/base/seed.hpp"
#include "harness/laws/law.hpp"
#include "harness/laws/probe_models.hpp"

// For the tests of this room only.

namespace kvproof::harness {

/// A backend that can do all that the contract speaks of.
inline const Capabilities& everything() {
  static const Capabilities kAll = [] {
    Capabilities all;
    all.kinds = {"dynamic", "static", "static_sliding_window"};
    all.ops = {"new", "forward", "clone", "crop", "gather", "reset", "drop", "length", "read", "save", "load", "generate"};
    all.threads = all.poison = true;
    return all;
  }();
  return kAll;
}

/// A case as `kvproof check` would make it, and the sizes of its models.
struct MadeCase {
  std::map<std::string, ModelFacts> models;
  LawCase made;
};

inline MadeCase made_case(const Law& law, std::uint64_t seed, std::size_t index, const Capabilities& capabilities = everything()) {
  static const std::vector<ModelFacts> kFacts = [] {
    std::vector<ModelFacts> facts;
    for (const ModelSource& model : probe_models()) facts.push_back(facts_of(model));
    return facts;
  }();
  MadeCase result;
  const std::uint64_t case_seed = derived_seed(seed, fmt::format("{}/{}", law.id, index));
  for (const auto& [name, number] : probe_choice(case_seed, law.models)) result.models[name] = kFacts[number];
  result.made = law.generate({result.models, capabilities, case_seed, index});
  return result;
}

}  // namespace kvproof::harness
