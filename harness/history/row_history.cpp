#include "harness/history/row_history.hpp"

#include "engine/base/seed.hpp"

namespace kvproof::harness {

bool RowHistory::visible(std::size_t q, std::size_t c) const noexcept {
  return c <= q && (*columns[q].mask)[c] != 0 && (!window || q - c < *window);
}

std::vector<std::uint64_t> RowHistory::prefix_hashes() const {
  std::vector<std::uint64_t> hashes;
  hashes.reserve(columns.size());
  std::uint64_t hash = mix64(window ? *window + 1 : 0);
  for (std::size_t q = 0; q < columns.size(); ++q) {
    hash = mix64(hash ^ static_cast<std::uint64_t>(columns[q].token));
    hash = mix64(hash + static_cast<std::uint64_t>(columns[q].position));
    for (std::size_t c = 0; c <= q; ++c) hash = mix64(hash + ((*columns[q].mask)[c] != 0 ? 3U : 5U));
    hashes.push_back(hash);
  }
  return hashes;
}

std::vector<std::uint64_t> RowHistory::meaning_hashes(bool positions) const {
  std::vector<std::uint64_t> hashes;
  hashes.reserve(columns.size());
  for (std::size_t q = 0; q < columns.size(); ++q) {
    std::uint64_t hash = mix64(static_cast<std::uint64_t>(columns[q].token) + 1);
    if (positions) hash = mix64(hash + static_cast<std::uint64_t>(columns[q].position));
    for (std::size_t c = 0; c < q; ++c)
      if (visible(q, c)) hash = mix64(hash ^ hashes[c]);
    hashes.push_back(mix64(hash + (visible(q, q) ? 1U : 0U)));
  }
  return hashes;
}

}  // namespace kvproof::harness
