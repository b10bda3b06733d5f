#include "engine/kernels/loops.hpp"

#include "engine/kernels/instruction_set.hpp"
#include "engine/kernels/lanes.hpp"

// A product is cut into tiles of a few rows by a few vectors of columns, held in registers while the inner index runs. A tile of
// few sums is given several partial sums each: one chain of additions would wait for itself, and rounds worse.

namespace kvproof::kernels {
namespace {

template <std::size_t rows, std::size_t vectors, std::size_t width>
struct Tile {
  static constexpr std::size_t kSums = rows * vectors;
  static constexpr std::size_t kPartials = kSums >= 8 ? 1 : kSums >= 4 ? 2 : 4;
  using Vector = Lanes<width>;

  [[gnu::always_inline]] static inline void step(const ConstMatrix& x, const ConstMatrix& w, std::size_t k,
                                                 Vector (&sum)[rows][vectors]) noexcept {
    Vector weight[vectors];
    for (std::size_t v = 0; v < vectors; ++v) weight[v] = load<Vector>(w.data + k * w.stride + v * width);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t v = 0; v < vectors; ++v) sum[r][v] += x.data[r * x.stride + k] * weight[v];
  }

  /// The tile whose corner the three views point at.
  [[gnu::always_inline]] static inline void run(const ConstMatrix& x, const ConstMatrix& w, const Matrix& y, Into into) noexcept {
    Vector sum[kPartials][rows][vectors] = {};
    std::size_t k = 0;
    for (; k + kPartials <= x.columns; k += kPartials)
      for (std::size_t p = 0; p < kPartials; ++p) step(x, w, k + p, sum[p]);
    for (; k < x.columns; ++k) step(x, w, k, sum[0]);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t v = 0; v < vectors; ++v) {
        Vector total = sum[0][r][v];
        for (std::size_t p = 1; p < kPartials; ++p) total += sum[p][r][v];
        float* to = y.data + r * y.stride + v * width;
        store(into == Into::add ? load<Vector>(to) + total : total, to);
      }
  }
};

struct Multiply {
  template <std::size_t rows, std::size_t vectors, std::size_t width>
  [[gnu::always_inline]] static inline std::size_t columns_by(const ConstMatrix& x, const ConstMatrix& w, const Matrix& y,
                                                              Into into, std::size_t column) noexcept {
    for (; column + vectors * width <= y.columns; column += vectors * width)
      Tile<rows, vectors, width>::run(x, {w.data + column, w.rows, w.columns, w.stride},
                                      {y.data + column, y.rows, y.columns, y.stride}, into);
    return column;
  }

  template <std::size_t rows>
  [[gnu::always_inline]] static inline std::size_t rows_by(const ConstMatrix& x, const ConstMatrix& w, const Matrix& y, Into into,
                                                           std::size_t row) noexcept {
    for (; row + rows <= x.rows; row += rows) {
      const ConstMatrix from{x.data + row * x.stride, rows, x.columns, x.stride};
      const Matrix to{y.data + row * y.stride, rows, y.columns, y.stride};
      std::size_t column = columns_by<rows, rows == 1 ? 4 : 2, 16>(from, w, to, into, 0);
      column = columns_by<rows, 1, 16>(from, w, to, into, column);
      column = columns_by<rows, 1, 4>(from, w, to, into, column);
      columns_by<rows, 1, 1>(from, w, to, into, column);
    }
    return row;
  }

  [[gnu::always_inline]] static inline void run(const ConstMatrix& x, const ConstMatrix& w, const Matrix& y, Into into) noexcept {
    std::size_t row = rows_by<4>(x, w, y, into, 0);
    row = rows_by<2>(x, w, y, into, row);
    rows_by<1>(x, w, y, into, row);
  }
};

/// `count` dot products of x with rows of m that lie `stride` apart, all of length n.
template <std::size_t count>
[[gnu::always_inline]] inline void dots(const float* x, const float* m, std::size_t stride, std::size_t n,
                                        float (&result)[count]) noexcept {
  Lanes16 sum[count] = {};
  std::size_t k = 0;
  for (; k + 16 <= n; k += 16) {
    const auto from = load<Lanes16>(x + k);
    for (std::size_t c = 0; c < count; ++c) sum[c] += from * load<Lanes16>(m + c * stride + k);
  }
  for (std::size_t c = 0; c < count; ++c) result[c] = sum_of(sum[c]);
  for (; k < n; ++k)
    for (std::size_t c = 0; c < count; ++c) result[c] += x[k] * m[c * stride + k];
}

struct MultiplyTransposed {
  template <std::size_t count>
  [[gnu::always_inline]] static inline std::size_t columns_by(const float* x, const ConstMatrix& m, float scale, float* y,
                                                              std::size_t column) noexcept {
    for (; column + count <= m.rows; column += count) {
      float result[count];
      dots(x, m.data + column * m.stride, m.stride, m.columns, result);
      for (std::size_t c = 0; c < count; ++c) y[column + c] = scale * result[c];
    }
    return column;
  }

  [[gnu::always_inline]] static inline void run(const ConstMatrix& x, const ConstMatrix& m, float scale, const Matrix& y) noexcept {
    for (std::size_t row = 0; row < x.rows; ++row) {
      const float* from = x.data + row * x.stride;
      float* to = y.data + row * y.stride;
      const std::size_t column = columns_by<8>(from, m, scale, to, 0);
      columns_by<1>(from, m, scale, to, column);
    }
  }
};

}  // namespace

void multiply_by_loops(const ConstMatrix& x, const ConstMatrix& w, const Matrix& y, Into into) noexcept {
  run_widest<Multiply, const ConstMatrix&, const ConstMatrix&, const Matrix&, Into>(x, w, y, into);
}

void multiply_transposed_by_loops(const ConstMatrix& x, const ConstMatrix& m, float scale, const Matrix& y) noexcept {
  run_widest<MultiplyTransposed, const ConstMatrix&, const ConstMatrix&, float, const Matrix&>(x, m, scale, y);
}

}  // namespace kvproof::kernels
