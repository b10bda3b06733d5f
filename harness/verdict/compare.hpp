#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "harness/contract/reply.hpp"
#include "harness/verdict/finding.hpp"
#include "harness/verdict/tolerance.hpp"

namespace kvproof::harness {

/// How far an answer is from what was expected, summed over everything compared.
struct Comparison {
  std::size_t rows = 0;          ///< rows compared: one query's logits, or one stored column's K or V
  std::size_t elements = 0;      ///< numbers compared
  std::size_t failing = 0;       ///< numbers beyond the bound
  double worst = 0;              ///< largest |got - want| / bound; infinity if something is not finite
  std::optional<Place> worst_place, first_failing;
  std::size_t failing_in_first_row = 0, row_size = 0;  ///< of the row of first_failing
  double sum_of_squares = 0;     ///< of got - want; RMS = sqrt(sum / elements)
  double worst_kl = 0;           ///< largest KL(want || got) of a row of logits, in nats; infinity if it is not a number
  std::size_t top1_rows = 0, top1_agree = 0, top1_undecidable = 0;  ///< rows of logits; undecidable = got's best ties with want's

  void add(const Comparison& other);
};

/// A tensor seen as [rows, columns, elements of one column]: logits [B, T, V], or keys [B, H, S, D] with H * D elements a column.
struct Layout {
  std::size_t rows = 0, columns = 0, elements = 0;
  bool heads = false;
  std::size_t head_dim = 0;

  [[nodiscard]] std::size_t index(std::size_t row, std::size_t column, std::size_t element) const noexcept;
};

[[nodiscard]] Layout logits_layout(const Tensor& tensor);
[[nodiscard]] Layout heads_layout(const Tensor& tensor);

/// The numbers of one row; `noise` may be empty.
struct RowNumbers {
  std::span<const double> want, got, noise;
};

/// Compares one row, which stands at `at` (row, column) of its answer.
void compare_row(const RowNumbers& numbers, std::pair<std::size_t, std::size_t> at, const Tolerance& tolerance, Comparison& sum);

/// Compares the rows that count. NaN fails, and so does an infinity on either side, whatever bound it makes.
///
/// Requires  got and want of one shape; compared [rows, columns]; noise of the same shape or null.
[[nodiscard]] Comparison compare(const Layout& layout, const Tensor& want, const Tensor& got, const std::vector<std::uint8_t>& compared,
                                 const Tensor* noise, const Tolerance& tolerance);

/// Adds KL divergence and top-1 agreement of logits to a comparison.
void compare_distributions(const Layout& layout, const Tensor& want, const Tensor& got, const std::vector<std::uint8_t>& compared,
                           const Tensor* noise, const Tolerance& tolerance, Comparison& comparison);

/// The first number that is not finite, wherever it stands.
[[nodiscard]] std::optional<Place> first_non_finite(const Layout& layout, const Tensor& tensor);

}  // namespace kvproof::harness
