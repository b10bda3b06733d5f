#include "engine/session/refused.hpp"

#include <array>

namespace kvproof {
namespace {

// In the order of the enum, which is the order of the table in docs/contract.md.
constexpr std::array<std::string_view, 19> kNames{
    "unknown_cache", "model_mismatch", "cache_exists",   "name_unknown",   "bad_argument",
    "layer_range",   "empty_input",    "batch_mismatch", "token_range",    "mask_length",
    "mask_value",    "mask_revival",   "position_shape", "position_range", "context_length",
    "capacity",      "crop_range",     "crop_evicted",   "row_range"};
static_assert(kNames.size() == static_cast<std::size_t>(RefusalCode::row_range) + 1);

}  // namespace

std::string_view refusal_code_name(RefusalCode code) noexcept {
  const auto index = static_cast<std::size_t>(code);
  return index < kNames.size() ? kNames[index] : std::string_view("unknown code");
}

}  // namespace kvproof
