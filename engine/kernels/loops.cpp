#include "engine/kernels/loops.hpp"

#include <algorithm>

#include "engine/kernels/instruction_set.hpp"
#include "engine/kernels/lanes.hpp"

// A product is cut into tiles of a few rows by a few vectors of columns, held in registers while the inner index runs. How large a
// tile may be depends on the registers of the instruction set. A tile of few sums is given several partial sums each: one chain
// of additions would wait for itself, and rounds worse. Tiles that share columns of the weights come one after the other, so that
// these stay in the first cache; the inner index is cut, and the weights copied if there are many rows, for the same reason.

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

/// How many rows of a tile, and how many vectors of 16 columns, an instruction set has registers for.
template <InstructionSet set>
constexpr std::size_t kTileRows = set == InstructionSet::avx512 ? 8 : set == InstructionSet::avx2 ? 4 : 2;
template <InstructionSet set>
constexpr std::size_t kTileVectors = set == InstructionSet::avx512 ? 2 : 1;

constexpr std::size_t kInner = 256;     // the inner index is cut into pieces of this many
constexpr std::size_t kPanel = 32;      // columns of a copied panel of weights

/// Copying a panel pays for itself if many rows use it and the weights are no guests of the first cache anyway.
KVPROOF_INLINE bool worth_a_panel(std::size_t rows, std::size_t weights) noexcept { return rows >= 12 && weights >= (std::size_t{1} << 15U); }

/// A copy of `columns` <= kPanel columns of weights, kInner deep. Rows of large matrices lie whole pages apart and would push each
/// other out of the first cache.
struct Panel {
  alignas(64) float values[kInner * kPanel];
};

template <InstructionSet set>
struct Strips {
  template <std::size_t rows, std::size_t vectors, std::size_t width>
  KVPROOF_INLINE void tiles(Piece& piece, std::size_t& left) noexcept {
    for (; left >= rows; left -= rows) {
      Tile<rows, vectors, width>::run(piece);
      piece.x += rows * piece.x_stride;
      piece.y += rows * piece.y_stride;
    }
  }

  /// All rows of a strip of vectors * width columns.
  template <std::size_t vectors, std::size_t width>
  KVPROOF_INLINE void strip(Piece piece, std::size_t rows) noexcept {
    tiles<kTileRows<set>, vectors, width>(piece, rows);
    if constexpr (kTileRows<set> > 4) tiles<4, vectors, width>(piece, rows);
    if constexpr (kTileRows<set> > 3) tiles<3, vectors, width>(piece, rows);
    if constexpr (kTileRows<set> > 2) tiles<2, vectors, width>(piece, rows);
    tiles<1, vectors, width>(piece, rows);
  }

  KVPROOF_INLINE void move_right(Piece& piece, std::size_t columns) noexcept {
    piece.w += columns;
    piece.y += columns;
    if (piece.bias != nullptr) piece.bias += columns;
  }

  template <std::size_t vectors, std::size_t width>
  KVPROOF_INLINE void strips(Piece& piece, std::size_t rows, std::size_t& left) noexcept {
    for (; left >= vectors * width; left -= vectors * width) {
      strip<vectors, width>(piece, rows);
      move_right(piece, vectors * width);
    }
  }

  KVPROOF_INLINE void run(Piece piece, std::size_t rows, std::size_t columns) noexcept {
    if (rows == 1)
      for (; columns >= 64; columns -= 64) {  // a single row has registers for more columns
        Tile<1, 4, 16>::run(piece);
        move_right(piece, 64);
      }
    strips<kTileVectors<set>, 16>(piece, rows, columns);
    if constexpr (kTileVectors<set> > 1) strips<1, 16>(piece, rows, columns);
    strips<1, 4>(piece, rows, columns);
    strips<1, 1>(piece, rows, columns);
  }
};

struct Multiply {
  KVPROOF_INLINE void copy_panel(const float* w, std::size_t stride, std::size_t in, std::size_t columns, Panel& panel) noexcept {
    if (columns == kPanel) {
      for (std::size_t k = 0; k < in; ++k) __builtin_memcpy(panel.values + k * kPanel, w + k * stride, kPanel * sizeof(float));
      return;
    }
    for (std::size_t k = 0; k < in; ++k)
      for (std::size_t c = 0; c < columns; ++c) panel.values[k * kPanel + c] = w[k * stride + c];
  }

  template <InstructionSet set>
  KVPROOF_INLINE void by_panels(Piece piece, std::size_t rows, std::size_t columns) noexcept {
    Panel panel;
    const Piece whole = piece;
    piece.w = panel.values;
    piece.w_stride = kPanel;
    for (std::size_t column = 0; column < columns; column += kPanel) {
      const std::size_t width = std::min(kPanel, columns - column);
      copy_panel(whole.w + column, whole.w_stride, piece.in, width, panel);
      piece.y = whole.y + column;
      if (whole.bias != nullptr) piece.bias = whole.bias + column;
      Strips<set>::run(piece, rows, width);
    }
  }

  template <InstructionSet set>
  KVPROOF_INLINE void run(const ConstMatrix& x, const ConstMatrix& w, const float* bias, const Matrix& y, bool add) noexcept {
    std::size_t k = 0;
    Piece piece{x.data, w.data, y.data, bias, x.stride, w.stride, y.stride, 0, add};
    do {
      piece.in = std::min(kInner, x.columns - k);
      if (worth_a_panel(x.rows, w.rows * w.columns))
        by_panels<set>(piece, x.rows, y.columns);
      else
        Strips<set>::run(piece, x.rows, y.columns);
      k += piece.in;
      piece.x += piece.in;
      piece.w += piece.in * w.stride;
      piece.bias = nullptr;
      piece.add = true;
    } while (k < x.columns);
  }
};

/// The dot products of x with four rows of m.
KVPROOF_INLINE void four_dots(const float* x, const ConstMatrix& m, float scale, float* y) noexcept {
  Lanes16 sum[4] = {};
  std::size_t k = 0;
  for (; k + 16 <= m.columns; k += 16) {
    const auto left = load<Lanes16>(x + k);
    for (std::size_t c = 0; c < 4; ++c) sum[c] += left * load<Lanes16>(m.data + c * m.stride + k);
  }
  Lanes<4> total = sums_of(sum[0], sum[1], sum[2], sum[3]);
  for (; k < m.columns; ++k) total += x[k] * Lanes<4>{m.data[k], m.data[m.stride + k], m.data[2 * m.stride + k], m.data[3 * m.stride + k]};
  store(total * scale, y);
}

KVPROOF_INLINE float dot(const float* a, const float* b, std::size_t n) noexcept {
  Lanes16 sum{};
  std::size_t k = 0;
  for (; k + 16 <= n; k += 16) sum += load<Lanes16>(a + k) * load<Lanes16>(b + k);
  float total = sum_of(sum);
  for (; k < n; ++k) total += a[k] * b[k];
  return total;
}

struct MultiplyTransposed {
  /// A panel of rows of m, turned into columns and scaled.
  KVPROOF_INLINE void turn_panel(const float* m, std::size_t stride, std::size_t in, std::size_t columns, float scale, Panel& panel) noexcept {
    for (std::size_t c = 0; c < columns; ++c)
      for (std::size_t k = 0; k < in; ++k) panel.values[k * kPanel + c] = scale * m[c * stride + k];
  }

  /// For many rows: as a product with copied panels. Panels outside, so that m is read once.
  template <InstructionSet set>
  KVPROOF_INLINE void by_panels(const ConstMatrix& x, const ConstMatrix& m, float scale, const Matrix& y) noexcept {
    Panel panel;
    for (std::size_t column = 0; column < m.rows; column += kPanel) {
      const std::size_t width = std::min(kPanel, m.rows - column);
      Piece piece{x.data, panel.values, y.data + column, nullptr, x.stride, kPanel, y.stride, 0, false};
      for (std::size_t k = 0; k < x.columns; k += piece.in) {
        piece.in = std::min(kInner, x.columns - k);
        piece.x = x.data + k;
        piece.add = k > 0;
        turn_panel(m.data + column * m.stride + k, m.stride, piece.in, width, scale, panel);
        Strips<set>::run(piece, x.rows, width);
      }
    }
  }

  /// For few rows: as dot products.
  KVPROOF_INLINE void by_dots(const ConstMatrix& x, const ConstMatrix& m, float scale, const Matrix& y) noexcept {
    std::size_t column = 0;
    for (; column + 4 <= m.rows; column += 4)
      for (std::size_t row = 0; row < x.rows; ++row)
        four_dots(x.data + row * x.stride, {m.data + column * m.stride, 4, m.columns, m.stride}, scale, y.data + row * y.stride + column);
    for (; column < m.rows; ++column)
      for (std::size_t row = 0; row < x.rows; ++row)
        y.data[row * y.stride + column] = scale * dot(x.data + row * x.stride, m.data + column * m.stride, x.columns);
  }

  template <InstructionSet set>
  KVPROOF_INLINE void run(const ConstMatrix& x, const ConstMatrix& m, float scale, const Matrix& y) noexcept {
    if (x.rows >= 12)
      by_panels<set>(x, m, scale, y);
    else
      by_dots(x, m, scale, y);
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
