#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/rows.hpp"

namespace kvproof {

/// The present mask bits of a cache's columns, evicted ones included: 1 = visible, 0 = hidden from now on.
///
/// Shapes    [batch][length]; an empty mask has no batch size.
/// Owns      its bits; a copy shares nothing.
class PastMask {
 public:
  PastMask() = default;
  /// Requires bits.size() == batch * length, and every bit 0 or 1.
  PastMask(std::size_t batch, std::size_t length, std::span<const std::uint8_t> bits);

  [[nodiscard]] std::size_t batch() const noexcept { return batch_; }
  [[nodiscard]] std::size_t length() const noexcept { return length_; }
  [[nodiscard]] std::span<const std::uint8_t> row(std::size_t row) const noexcept { return rows_[row]; }
  [[nodiscard]] std::vector<std::uint8_t> bits() const;  ///< [batch, length], row-major

  /// Makes room for `columns` columns of `batch` rows; grows geometrically. Changes nothing that can be seen.
  void reserve(std::size_t batch, std::size_t columns);
  /// A step is done: takes over the call's mask (null = all ones), which now has `length` columns.
  /// Requires reserve(batch, length) and a checked mask.
  void take(const Rows* mask, std::size_t batch, std::size_t length) noexcept;
  void crop(std::size_t length) noexcept;  ///< keeps the first `length` columns; 0 empties
  /// Row i is row rows[i] of this mask, with room for `columns` columns. Requires rows in range.
  [[nodiscard]] PastMask gathered(std::span<const std::size_t> rows, std::size_t columns) const;

 private:
  std::vector<std::vector<std::uint8_t>> rows_;  // [>= batch_][length_]
  std::size_t batch_ = 0, length_ = 0;
};

}  // namespace kvproof
