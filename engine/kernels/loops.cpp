#include "engine/kernels/loops.hpp"

#include <algorithm>

#include "engine/kernels/instruction_set.hpp"
#include "engine/kernels/lanes.hpp"

// A product is cut into tiles of a few rows by a few vectors of columns, held in registers while the inner index runs. How large a
// tile may be depends on the registers of the instruction set. A tile of few sums is given several partial sums each: one chain
// of additions would wait for itself, and rounds worse. Tiles that share columns of the weights come one after the other, so that
// these stay in the first cache; the inner index is cut for the same reason.

namespace kvproof::kernels {
namespace {

/// One piece of a product: what x and w point at is multiplied into what y points at.
struct Piece {
  const float* x;
  const float* w;
  float* y;
  const float* bias;  // null: none
  std::size_t x_stride, w_stride, y_stride;
  std::size_t in;
  bool add;
};

template <std::size_t rows, std::size_t vectors, std::size_t width>
struct Tile {
  static constexpr std::size_t kSums = rows * vectors;
  static constexpr std::size_t kPartials = kSums >= 8 ? 1 : kSums >= 4 ? 2 : 4;
  using Vector = Lanes<width>;

  KVPROOF_INLINE void step(const Piece& piece, std::size_t k, Vector (&sum)[rows][vectors]) noexcept {
    Vector weight[vectors];
    for (std::size_t v = 0; v < vectors; ++v) weight[v] = load<Vector>(piece.w + k * piece.w_stride + v * width);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t v = 0; v < vectors; ++v) sum[r][v] += piece.x[r * piece.x_stride + k] * weight[v];
  }

  KVPROOF_INLINE void finish(const Piece& piece, const Vector (&sum)[kPartials][rows][vectors]) noexcept {
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t v = 0; v < vectors; ++v) {
        Vector total = sum[0][r][v];
        for (std::size_t p = 1; p < kPartials; ++p) total += sum[p][r][v];
        if (piece.bias != nullptr) total += load<Vector>(piece.bias + v * width);
        float* to = piece.y + r * piece.y_stride + v * width;
        store(piece.add ? load<Vector>(to) + total : total, to);
      }
  }

  KVPROOF_INLINE void run(const Piece& piece) noexcept {
    Vector sum[kPartials][rows][vectors] = {};
    std::size_t k = 0;
    for (; k + kPartials <= piece.in; k += kPartials)
      for (std::size_t p = 0; p < kPartials; ++p) step(piece, k + p, sum[p]);
    for (; k < piece.in; ++k) step(piece, k, sum[0]);
    finish(piece, sum);
  }
};

struct Multiply {
  /// Rows of a tile as long as there are that many left: with registers for 16, 8 or 4 sums of 16 floats.
  template <InstructionSet set>
  static constexpr std::size_t kRows = set == InstructionSet::avx512 ? 8 : set == InstructionSet::avx2 ? 4 : 2;
  template <InstructionSet set>
  static constexpr std::size_t kVectors = set == InstructionSet::avx512 ? 2 : 1;

  template <std::size_t rows, std::size_t vectors, std::size_t width>
  KVPROOF_INLINE void strip_by(Piece& piece, std::size_t& left) noexcept {
    for (; left >= rows; left -= rows) {
      Tile<rows, vectors, width>::run(piece);
      piece.x += rows * piece.x_stride;
      piece.y += rows * piece.y_stride;
    }
  }

  /// All rows of a strip of vectors * width columns.
  template <InstructionSet set, std::size_t vectors, std::size_t width>
  KVPROOF_INLINE void strip(Piece piece, std::size_t rows) noexcept {
    strip_by<kRows<set>, vectors, width>(piece, rows);
    if constexpr (kRows<set> > 4) strip_by<4, vectors, width>(piece, rows);
    if constexpr (kRows<set> > 3) strip_by<3, vectors, width>(piece, rows);
    if constexpr (kRows<set> > 2) strip_by<2, vectors, width>(piece, rows);
    strip_by<1, vectors, width>(piece, rows);
  }

  template <InstructionSet set, std::size_t vectors, std::size_t width>
  KVPROOF_INLINE void strips(Piece& piece, std::size_t rows, std::size_t& left) noexcept {
    for (; left >= vectors * width; left -= vectors * width) {
      strip<set, vectors, width>(piece, rows);
      piece.w += vectors * width;
      piece.y += vectors * width;
      if (piece.bias != nullptr) piece.bias += vectors * width;
    }
  }

  template <InstructionSet set>
  KVPROOF_INLINE void columns(Piece piece, std::size_t rows, std::size_t left) noexcept {
    if (rows == 1)
      for (; left >= 64; left -= 64) {  // a single row has registers for more columns
        Tile<1, 4, 16>::run(piece);
        piece.w += 64;
        piece.y += 64;
        if (piece.bias != nullptr) piece.bias += 64;
      }
    strips<set, kVectors<set>, 16>(piece, rows, left);
    if constexpr (kVectors<set> > 1) strips<set, 1, 16>(piece, rows, left);
    strips<set, 1, 4>(piece, rows, left);
    strips<set, 1, 1>(piece, rows, left);
  }

  template <InstructionSet set>
  KVPROOF_INLINE void run(const ConstMatrix& x, const ConstMatrix& w, const float* bias, const Matrix& y, bool add) noexcept {
    constexpr std::size_t kInner = 256;
    Piece piece{x.data, w.data, y.data, bias, x.stride, w.stride, y.stride, 0, add};
    std::size_t k = 0;
    do {
      piece.in = std::min(kInner, x.columns - k);
      columns<set>(piece, x.rows, y.columns);
      k += piece.in;
      piece.x += piece.in;
      piece.w += piece.in * w.stride;
      piece.bias = nullptr;
      piece.add = true;
    } while (k < x.columns);
  }
};

/// `rows` by 4 dot products of length n.
template <std::size_t rows>
struct Dots {
  KVPROOF_INLINE void run(const ConstMatrix& x, const ConstMatrix& m, float scale, const Matrix& y) noexcept {
    const std::size_t n = x.columns;
    Lanes16 sum[rows][4] = {};
    std::size_t k = 0;
    for (; k + 16 <= n; k += 16) {
      Lanes16 right[4];
      for (std::size_t c = 0; c < 4; ++c) right[c] = load<Lanes16>(m.data + c * m.stride + k);
      for (std::size_t r = 0; r < rows; ++r) {
        const auto left = load<Lanes16>(x.data + r * x.stride + k);
        for (std::size_t c = 0; c < 4; ++c) sum[r][c] += left * right[c];
      }
    }
    for (std::size_t r = 0; r < rows; ++r) {
      Lanes<4> total = sums_of(sum[r][0], sum[r][1], sum[r][2], sum[r][3]);
      for (std::size_t i = k; i < n; ++i) {
        const Lanes<4> right{m.data[i], m.data[m.stride + i], m.data[2 * m.stride + i], m.data[3 * m.stride + i]};
        total += x.data[r * x.stride + i] * right;
      }
      store(total * scale, y.data + r * y.stride);
    }
  }
};

KVPROOF_INLINE float dot(const float* a, const float* b, std::size_t n) noexcept {
  Lanes16 sum{};
  std::size_t k = 0;
  for (; k + 16 <= n; k += 16) sum += load<Lanes16>(a + k) * load<Lanes16>(b + k);
  float total = sum_of(sum);
  for (; k < n; ++k) total += a[k] * b[k];
  return total;
}

struct MultiplyTransposed {
  template <InstructionSet set>
  static constexpr std::size_t kRows = set == InstructionSet::avx512 ? 4 : set == InstructionSet::avx2 ? 1 : 1;

  template <std::size_t rows>
  KVPROOF_INLINE void strip_by(ConstMatrix& x, const ConstMatrix& m, float scale, Matrix& y, std::size_t& left) noexcept {
    for (; left >= rows; left -= rows) {
      Dots<rows>::run(x, m, scale, y);
      x.data += rows * x.stride;
      y.data += rows * y.stride;
    }
  }

  template <InstructionSet set>
  KVPROOF_INLINE void run(const ConstMatrix& x, const ConstMatrix& m, float scale, const Matrix& y) noexcept {
    std::size_t column = 0;
    for (; column + 4 <= m.rows; column += 4) {
      ConstMatrix from = x;
      const ConstMatrix four{m.data + column * m.stride, 4, m.columns, m.stride};
      Matrix to{y.data + column, y.rows, y.columns, y.stride};
      std::size_t left = x.rows;
      strip_by<kRows<set>>(from, four, scale, to, left);
      strip_by<1>(from, four, scale, to, left);
    }
    for (; column < m.rows; ++column)
      for (std::size_t row = 0; row < x.rows; ++row)
        y.data[row * y.stride + column] = scale * dot(x.data + row * x.stride, m.data + column * m.stride, x.columns);
  }
};

}  // namespace

void multiply_by_loops(const ConstMatrix& x, const ConstMatrix& w, const float* bias, const Matrix& y, Into into) noexcept {
  run_widest<Multiply, const ConstMatrix&, const ConstMatrix&, const float*, const Matrix&, bool>(x, w, bias, y, into == Into::add);
}

void multiply_transposed_by_loops(const ConstMatrix& x, const ConstMatrix& m, float scale, const Matrix& y) noexcept {
  run_widest<MultiplyTransposed, const ConstMatrix&, const ConstMatrix&, float, const Matrix&>(x, m, scale, y);
}

}  // namespace kvproof::kernels
