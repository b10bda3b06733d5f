#include "harness/contract/finding_kind.hpp"

#include <algorithm>
#include <array>

namespace kvproof::harness {
namespace {

constexpr std::array<std::string_view, kFindingKindCount> kNames = {"wrong_logits",   "wrong_kv",      "wrong_ids",  "non_finite",    "wrong_shape",    "wrong_length",
                                                                    "accepts_misuse", "refuses_valid", "wrong_code", "state_changed", "not_repeatable", "broke_down"};

}  // namespace

std::string_view finding_name(FindingKind kind) noexcept { return kNames[static_cast<std::size_t>(kind)]; }

std::optional<FindingKind> finding_from_name(std::string_view name) noexcept {
  const auto* found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<FindingKind>(found - kNames.begin());
}

}  // namespace kvproof::harness
