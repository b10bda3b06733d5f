#pragma once
#include <cstddef>
#include <optional>
#include <string_view>

namespace kvproof {

/// Element types of safetensors that the project reads or writes.
enum class Dtype { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, boolean };

[[nodiscard]] std::size_t dtype_size(Dtype dtype) noexcept;         ///< bytes of one element
[[nodiscard]] std::string_view dtype_name(Dtype dtype) noexcept;    ///< "F32", "BF16", "BOOL", …
[[nodiscard]] std::optional<Dtype> dtype_from_name(std::string_view name) noexcept;

}  // namespace kvproof
