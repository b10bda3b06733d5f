#pragma once
#include <string_view>

#include "engine/base/error.hpp"

namespace kvproof {

/// Why a call was refused, in the order in which the codes apply (docs/contract.md).
enum class RefusalCode {
  unknown_cache, model_mismatch, cache_exists, name_unknown, bad_argument, layer_range, empty_input, batch_mismatch,
  token_range, mask_length, mask_value, mask_revival, position_shape, position_range, context_length, capacity,
  crop_range, crop_evicted, row_range
};

[[nodiscard]] std::string_view refusal_code_name(RefusalCode code) noexcept;  ///< "mask_length", …

/// A call that breaks a rule of the contract. Everything is as before the call.
class Refused : public Error {
 public:
  Refused(RefusalCode code, Complaint complaint) : Error(std::move(complaint)), code_(code) {}
  [[nodiscard]] RefusalCode code() const noexcept { return code_; }

 private:
  RefusalCode code_;
};

}  // namespace kvproof
