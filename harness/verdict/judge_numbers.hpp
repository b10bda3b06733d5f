#pragma once
#include "harness/contract/reply.hpp"
#include "harness/verdict/judgement.hpp"
#include "harness/verdict/tolerance.hpp"

namespace kvproof::harness {

/// The numbers an answer can hold: logits [B, T or 1, vocab_size], keys or values [B, H, S, D].
enum class Part { logits, keys, values };

/// One kind of numbers of one step; borrowed.
struct NumbersOfStep {
  std::size_t step = 0;
  Part part = Part::logits;
  const Tensor* want = nullptr;   ///< null: there should be none
  const Tensor* got = nullptr;
  const Tensor* noise = nullptr;  ///< of the shape of want, or null
  const std::vector<std::uint8_t>& compared;  ///< [B, T or 1] or [B, S]
};

/// Judges shape, finiteness of logits (hidden rows too) and closeness, and adds the comparison and what is wrong to `judgement`.
void judge_numbers(const NumbersOfStep& numbers, const Tolerance& tolerance, Judgement& judgement);

}  // namespace kvproof::harness
