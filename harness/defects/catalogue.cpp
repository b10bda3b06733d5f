#include "harness/defects/catalogue.hpp"

#include <algorithm>

#include "harness/defects/fault_groups.hpp"

namespace kvproof::harness {

const std::vector<KnownFault>& known_faults() {
  static const std::vector<KnownFault> kFaults = [] {
    std::vector<KnownFault> all;
    for (const auto group : {plan_faults, call_faults, storage_faults})
      for (KnownFault& fault : group()) all.push_back(std::move(fault));
    return all;
  }();
  return kFaults;
}

const KnownFault* find_fault(std::string_view name) {
  const auto found = std::ranges::find(known_faults(), name, &KnownFault::name);
  return found == known_faults().end() ? nullptr : &*found;
}

}  // namespace kvproof::harness
