#include <cblas.h>
#include <fmt/format.h>

#include <string_view>

#include "engine/kernels/instruction_set.hpp"
#include "engine/kernels/kernels.hpp"
#include "engine/kernels/loops.hpp"

// OpenBLAS' thread settings belong to the calling program: nothing here changes them.

namespace kvproof::kernels {
namespace {

blasint as_blas(std::size_t value) noexcept { return static_cast<blasint>(value); }

/// True if OpenBLAS took the processor for one of the SSE age although it has AVX2: older releases do so with processors they do
/// not know, and are then several times slower than our own loops on one thread.
bool openblas_is_behind() noexcept {
  static const bool behind = [] {
    if (instruction_set() == InstructionSet::baseline) return false;
    const std::string_view kernel = openblas_get_corename();
    return kernel == "Prescott" || kernel == "Core2" || kernel == "Penryn" || kernel == "Dunnington" || kernel == "Nehalem";
  }();
  return behind;
}

/// Whether our own loops are to be preferred to OpenBLAS (measured in docs/kernels.md): small products, where waking its threads
/// costs more than it brings, and a few rows, where it is far from what the memory delivers.
bool loops_are_faster(std::size_t rows, std::size_t in, std::size_t out) noexcept {
  constexpr std::size_t kSmall = std::size_t{1} << 20U;
  return rows * in * out <= kSmall || (rows > 1 && rows <= 16) || openblas_is_behind();
}

void add_bias(std::span<const float> bias, std::span<float> y) noexcept {
  for (std::size_t start = 0; start + bias.size() <= y.size(); start += bias.size())
    add(y.subspan(start, bias.size()), bias, y.subspan(start, bias.size()));
}

}  // namespace

void multiply(const ConstMatrix& x, const ConstMatrix& w, const Matrix& y, Into into) noexcept {
  if (loops_are_faster(x.rows, x.columns, y.columns)) return multiply_by_loops(x, w, nullptr, y, into);
  const float keep = into == Into::add ? 1.0F : 0.0F;
  if (x.rows == 1)
    return cblas_sgemv(CblasRowMajor, CblasTrans, as_blas(w.rows), as_blas(w.columns), 1.0F, w.data, as_blas(w.stride), x.data, 1,
                       keep, y.data, 1);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, as_blas(x.rows), as_blas(y.columns), as_blas(x.columns), 1.0F, x.data,
              as_blas(x.stride), w.data, as_blas(w.stride), keep, y.data, as_blas(y.stride));
}

void multiply_transposed(const ConstMatrix& x, const ConstMatrix& m, float scale, const Matrix& y) noexcept {
  if (loops_are_faster(x.rows, x.columns, m.rows)) return multiply_transposed_by_loops(x, m, scale, y);
  if (x.rows == 1)
    return cblas_sgemv(CblasRowMajor, CblasNoTrans, as_blas(m.rows), as_blas(m.columns), scale, m.data, as_blas(m.stride), x.data,
                       1, 0.0F, y.data, 1);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, as_blas(x.rows), as_blas(m.rows), as_blas(x.columns), scale, x.data,
              as_blas(x.stride), m.data, as_blas(m.stride), 0.0F, y.data, as_blas(y.stride));
}

void linear(std::span<const float> x, std::size_t rows, std::span<const float> weight, std::span<const float> bias,
            std::span<float> y, Into into) noexcept {
  const std::size_t out = bias.size();
  const std::size_t in = weight.size() / out;
  const ConstMatrix from{x.data(), rows, in, in}, by{weight.data(), in, out, out};
  const Matrix to{y.data(), rows, out, out};
  if (loops_are_faster(rows, in, out)) return multiply_by_loops(from, by, bias.data(), to, into);
  multiply(from, by, to, into);
  add_bias(bias, y.first(rows * out));
}

std::string blas_description() {
  return fmt::format("{}, processor kernel {}{}; own loops {}", openblas_get_config(), openblas_get_corename(),
                     openblas_is_behind() ? " (behind this processor: not used; OPENBLAS_CORETYPE may name a better one)" : "",
                     instruction_set_name(instruction_set()));
}

}  // namespace kvproof::kernels
