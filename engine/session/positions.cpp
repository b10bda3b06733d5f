#include <fmt/format.h>

#include <algorithm>

#include "engine/session/session.hpp"

namespace kvproof {
namespace {

std::vector<std::int64_t> row_positions(const std::vector<std::int64_t>& mask, std::size_t columns) {
  std::vector<std::int64_t> positions;
  positions.reserve(columns);
  std::int64_t visible = 0;
  for (std::size_t c = 0; c < mask.size(); ++c) {
    visible += mask[c] != 0 ? 1 : 0;
    if (c + columns >= mask.size()) positions.push_back(std::max<std::int64_t>(visible - 1, 0));
  }
  return positions;
}

}  // namespace

Rows positions_from_mask(const Rows& attention_mask, std::size_t columns) {
  Rows positions;
  positions.reserve(attention_mask.size());
  for (const auto& mask : attention_mask) {
    if (mask.size() < columns)
      throw ShapeError({"positions_from_mask", fmt::format("mask row {} has {} columns", positions.size(), mask.size()),
                        fmt::format("at least {}", columns), {}});
    positions.push_back(row_positions(mask, columns));
  }
  return positions;
}

}  // namespace kvproof
