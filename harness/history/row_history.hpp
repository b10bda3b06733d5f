#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace kvproof::harness {

/// One column of one row: what was fed, and what it could see then.
struct Column {
  std::int64_t token = 0;
  std::int64_t position = 0;
  std::shared_ptr<const std::vector<std::uint8_t>> mask;  ///< the call's mask of this row: at least this column and all before it
  std::uint64_t origin = 0;  ///< which feeding made it: columns of one origin are one and the same K and V, wherever they went
};

/// All a cache stands for in one row: the columns ever fed, and the window they are seen through.
///
/// A column never changes after it was fed: hiding it later is a fact about later columns' masks.
struct RowHistory {
  std::vector<Column> columns;
  std::optional<std::size_t> window;  ///< window in force; none = everything before is seen

  /// Whether the query in column q sees column c.
  [[nodiscard]] bool visible(std::size_t q, std::size_t c) const noexcept;
  /// Whether column q was hidden in the call that fed it: then its own logits are not compared.
  [[nodiscard]] bool hidden(std::size_t q) const noexcept { return (*columns[q].mask)[q] == 0; }
  /// For each column a hash of everything its logits depend on: equal hashes = the same history up to there.
  [[nodiscard]] std::vector<std::uint64_t> prefix_hashes() const;
  /// For each column a hash of what its logits may depend on at all: its token, its position, and the same of every column it
  /// sees. Equal hashes = equal logits by the contract, however the columns were padded, cut into calls or moved about.
  /// With `positions` false the positions are left out: such columns differ in nothing else.
  [[nodiscard]] std::vector<std::uint64_t> meaning_hashes(bool positions = true) const;
};

}  // namespace kvproof::harness
