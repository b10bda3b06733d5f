#pragma once
#include <cstddef>

namespace kvproof::kernels {

/// A borrowed row-major matrix that is read: row r starts at `data + r * stride`.
struct ConstMatrix {
  const float* data = nullptr;
  std::size_t rows = 0, columns = 0;
  std::size_t stride = 0;
};

/// A borrowed row-major matrix that is written: row r starts at `data + r * stride`.
struct Matrix {
  float* data = nullptr;
  std::size_t rows = 0, columns = 0;
  std::size_t stride = 0;
};

/// What a product does with what is already in its result.
enum class Into { overwrite, add };

}  // namespace kvproof::kernels
