#include "engine/safetensors/dtype.hpp"

#include <array>

namespace kvproof {
namespace {

struct Row {
  Dtype dtype;
  std::string_view name;
  std::size_t size;
};

constexpr std::array<Row, 13> kTable{{{Dtype::f64, "F64", 8},
                                      {Dtype::f32, "F32", 4},
                                      {Dtype::f16, "F16", 2},
                                      {Dtype::bf16, "BF16", 2},
                                      {Dtype::i64, "I64", 8},
                                      {Dtype::i32, "I32", 4},
                                      {Dtype::i16, "I16", 2},
                                      {Dtype::i8, "I8", 1},
                                      {Dtype::u64, "U64", 8},
                                      {Dtype::u32, "U32", 4},
                                      {Dtype::u16, "U16", 2},
                                      {Dtype::u8, "U8", 1},
                                      {Dtype::boolean, "BOOL", 1}}};

const Row& row_of(Dtype dtype) noexcept { return kTable[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::size_t dtype_size(Dtype dtype) noexcept { return row_of(dtype).size; }

std::string_view dtype_name(Dtype dtype) noexcept { return row_of(dtype).name; }

std::optional<Dtype> dtype_from_name(std::string_view name) noexcept {
  for (const Row& row : kTable)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

}  // namespace kvproof
