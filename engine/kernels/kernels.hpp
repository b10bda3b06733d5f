#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "engine/kernels/matrix.hpp"

/// All arithmetic of the engine, behind one small interface: products through OpenBLAS, tiny sizes by loops of our own.
///
/// Shapes    the caller's word: nothing is checked here, the model and the plan were.
/// Numerics  sums are in float with several partial sums; layer norm accumulates in double; NaN and infinity pass through.
/// Threads   no state; OpenBLAS keeps the thread settings of the calling program.
/// Errors    none. Cost: allocates nothing.
namespace kvproof::kernels {

/// y (+)= x W; x [rows, in], w [in, out], y [rows, out].
void multiply(const ConstMatrix& x, const ConstMatrix& w, const Matrix& y, Into into) noexcept;

/// y = scale * x M^T; x [rows, in], m [out, in], y [rows, out].
void multiply_transposed(const ConstMatrix& x, const ConstMatrix& m, float scale, const Matrix& y) noexcept;

/// y (+)= x W + b; x [rows, in], weight [in, out], bias [out], y [rows, out]; all contiguous.
void linear(std::span<const float> x, std::size_t rows, std::span<const float> weight, std::span<const float> bias,
            std::span<float> y, Into into = Into::overwrite) noexcept;

/// y = (x - mean) / sqrt(variance + epsilon) * weight + bias, each row by itself; x, y [rows, n], weight, bias [n].
void layer_norm(std::span<const float> x, std::span<const float> weight, std::span<const float> bias, double epsilon,
                std::span<float> y) noexcept;

/// Activations, in place. gelu_tanh is x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); gelu_erf x/2 (1 + erf(x / sqrt 2)); silu
/// x / (1 + e^-x).
void gelu_tanh(std::span<float> values) noexcept;
void gelu_erf(std::span<float> values) noexcept;
void relu(std::span<float> values) noexcept;
void silu(std::span<float> values) noexcept;
void tanh(std::span<float> values) noexcept;

/// Turns scores into weights that sum to 1. A score of -infinity is a key that is not seen: its weight is exactly 0. If no key
/// is seen all weights are 0.
///
/// Requires  the floats from the end of `scores` up to the next multiple of kPadding belong to the caller; they are set to 0.
inline constexpr std::size_t kPadding = 16;
void softmax(std::span<float> scores) noexcept;

/// sum += weight * x; the same length.
void add_scaled(float weight, std::span<const float> x, std::span<float> sum) noexcept;

/// y = a + b; the same length.
void add(std::span<const float> a, std::span<const float> b, std::span<float> y) noexcept;

/// Name, version, configuration and processor kernel of the BLAS in use, and the instruction set of our own loops.
[[nodiscard]] std::string blas_description();

}  // namespace kvproof::kernels
