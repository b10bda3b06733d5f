#pragma once
#include "engine/kernels/matrix.hpp"

/// Products by loops of our own: no call into a library, no threads, a fixed order of every sum on a given instruction set.
namespace kvproof::kernels {

/// y (+)= x W + b; bias [out], or null for none.
void multiply_by_loops(const ConstMatrix& x, const ConstMatrix& w, const float* bias, const Matrix& y, Into into) noexcept;

/// y = scale * x M^T.
void multiply_transposed_by_loops(const ConstMatrix& x, const ConstMatrix& m, float scale, const Matrix& y) noexcept;

}  // namespace kvproof::kernels
