#pragma once
#include "harness/history/world.hpp"
#include "harness/laws/situations.hpp"

namespace kvproof::harness {

/// A forward that was carried out, with what it was carried out on; borrowed.
struct FedForward {
  const Forward& call;
  const CacheState* before = nullptr;  ///< the cache as it was; null without one
  const Outcome& outcome;
  const ModelFacts& model;

  [[nodiscard]] std::size_t past() const noexcept { return before != nullptr ? before->length : 0; }
  [[nodiscard]] std::size_t fresh() const noexcept { return call.input_ids.front().size(); }
  [[nodiscard]] std::size_t columns() const noexcept { return past() + fresh(); }
};

/// The situations that one forward shows by itself, whatever came before and comes after.
[[nodiscard]] Situations situations_of_forward(const FedForward& fed);

/// Whether a row of mask bits holds a hidden column in [from, to).
[[nodiscard]] bool hides(const std::vector<std::uint8_t>& bits, std::size_t from, std::size_t to) noexcept;

}  // namespace kvproof::harness
