#include "engine/session/past_mask.hpp"

#include <algorithm>

namespace kvproof {

PastMask::PastMask(std::size_t batch, std::size_t length, std::span<const std::uint8_t> bits)
    : rows_(batch), batch_(batch), length_(length) {
  for (std::size_t r = 0; r < batch; ++r) {
    const auto row = bits.subspan(r * length, length);
    rows_[r].assign(row.begin(), row.end());
  }
}

std::vector<std::uint8_t> PastMask::bits() const {
  std::vector<std::uint8_t> all;
  all.reserve(batch_ * length_);
  for (std::size_t r = 0; r < batch_; ++r) all.insert(all.end(), rows_[r].begin(), rows_[r].end());
  return all;
}

void PastMask::reserve(std::size_t batch, std::size_t columns) {
  if (rows_.size() < batch) rows_.resize(batch);
  for (auto& row : rows_)
    if (row.capacity() < columns) row.reserve(std::max(columns, 2 * row.capacity()));
}

void PastMask::take(const Rows* mask, std::size_t batch, std::size_t length) noexcept {
  for (std::size_t r = 0; r < batch; ++r) {
    rows_[r].resize(length, 1);
    if (mask != nullptr)
      std::ranges::transform((*mask)[r], rows_[r].begin(), [](std::int64_t bit) { return static_cast<std::uint8_t>(bit); });
  }
  batch_ = batch;
  length_ = length;
}

void PastMask::crop(std::size_t length) noexcept {
  for (auto& row : rows_) row.resize(std::min(length, row.size()));
  length_ = length;
  if (length == 0) batch_ = 0;
}

PastMask PastMask::gathered(std::span<const std::size_t> rows, std::size_t columns) const {
  PastMask result;
  result.reserve(rows.size(), columns);
  for (std::size_t i = 0; i < rows.size(); ++i)  // assign keeps the reserved room
    result.rows_[i].assign(rows_[rows[i]].begin(), rows_[rows[i]].end());
  result.batch_ = rows.size();
  result.length_ = length_;
  return result;
}

}  // namespace kvproof
