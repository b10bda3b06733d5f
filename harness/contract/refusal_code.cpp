#include "harness/contract/refusal_code.hpp"

#include <algorithm>
#include <array>

namespace kvproof::harness {
namespace {

constexpr std::array<std::string_view, kCodeCount + 1> kNames = {
    "unknown_cache", "model_mismatch", "cache_exists", "name_unknown", "bad_argument",   "layer_range",    "empty_input",
    "batch_mismatch", "token_range",   "mask_length",  "mask_value",   "mask_revival",   "position_shape", "position_range",
    "context_length", "capacity",      "crop_range",   "crop_evicted", "row_range",      "other"};

}  // namespace

std::string_view code_name(Code code) noexcept { return kNames[static_cast<std::size_t>(code)]; }

std::optional<Code> code_from_name(std::string_view name) noexcept {
  const auto* found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Code>(found - kNames.begin());
}

bool concerns_trace_words(Code code) noexcept {
  return code == Code::unknown_cache || code == Code::cache_exists || code == Code::name_unknown || code == Code::bad_argument;
}

}  // namespace kvproof::harness
