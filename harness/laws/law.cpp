#include "harness/laws/law.hpp"

#include <algorithm>

#include "harness/laws/law_groups.hpp"

namespace kvproof::harness {
namespace {

std::vector<Law> all_laws() {
  std::vector<Law> all;
  for (const auto group : {length_laws, mask_laws, position_laws, padding_laws, isolation_laws, cache_laws, window_laws, numerics_laws, generate_laws}) {
    const std::vector<Law> laws_of_group = group();
    all.insert(all.end(), laws_of_group.begin(), laws_of_group.end());
  }
  return all;
}

}  // namespace

std::span<const Law> laws() {
  static const std::vector<Law> kLaws = all_laws();
  return kLaws;
}

const Law* find_law(std::string_view id) {
  const auto found = std::ranges::find(laws(), id, &Law::id);
  return found == laws().end() ? nullptr : &*found;
}

}  // namespace kvproof::harness
