#include "harness/verdict/judge_ids.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvproof::harness {
namespace {

Finding wrong(FindingKind kind, std::string message, std::optional<Place> place = std::nullopt) { return {kind, 0, place, std::move(message)}; }

/// How many ids of a row count: up to and with its first eos.
std::size_t judged_ids(const std::vector<std::int64_t>& row, const std::optional<std::int64_t>& eos) {
  const auto end = eos ? std::ranges::find(row, *eos) : row.end();
  return static_cast<std::size_t>(end - row.begin()) + (end == row.end() ? 0U : 1U);
}

std::optional<Finding> judge_shape(const Generate& call, const Rows& ids) {
  if (ids.size() != call.input_ids.size())
    return wrong(FindingKind::wrong_shape, fmt::format("ids of {} rows, expected {}", ids.size(), call.input_ids.size()));
  std::size_t longest = 0;
  bool all_ended = true;
  for (const auto& row : ids) {
    const std::size_t judged = judged_ids(row, call.eos_token_id);
    longest = std::max(longest, judged);
    all_ended = all_ended && call.eos_token_id && judged != 0 && row[judged - 1] == *call.eos_token_id;
  }
  const std::size_t expected = all_ended ? longest : static_cast<std::size_t>(call.max_new_tokens);
  for (const auto& row : ids)
    if (row.size() != expected) return wrong(FindingKind::wrong_shape, fmt::format("a row of {} new ids, expected {}", row.size(), expected));
  return std::nullopt;
}

/// The prompt's row with all judged ids but the last behind it: what the engine had to feed.
RowHistory forced(const RowHistory& prompt, const std::vector<std::int64_t>& ids, std::size_t judged) {
  RowHistory history = prompt;
  std::vector<std::uint8_t> mask = *prompt.columns.back().mask;
  mask.resize(mask.size() + judged - 1, 1);
  const auto shared = std::make_shared<const std::vector<std::uint8_t>>(std::move(mask));
  for (std::size_t i = 0; i + 1 < judged; ++i) history.columns.push_back({ids[i], history.columns.back().position + 1, shared, 0});
  return history;
}

double row_noise(const std::vector<float>& in_float, const std::vector<double>& truth) {
  double noise = 0;
  for (std::size_t v = 0; v < truth.size(); ++v) noise = std::max(noise, std::abs(double{in_float[v]} - truth[v]));
  return noise;
}

std::optional<Finding> judge_row(std::size_t row, const std::vector<std::int64_t>& ids, std::size_t judged, const RowHistory& prompt,
                                 const Oracle& oracle, const Tolerance& tolerance) {
  const auto vocab_size = static_cast<std::int64_t>(oracle.facts().vocab_size);
  for (std::size_t i = 0; i < judged; ++i)
    if (ids[i] < 0 || ids[i] >= vocab_size)
      return wrong(FindingKind::wrong_ids, fmt::format("row {} new token {}: id {} is not in 0..{}", row, i, ids[i], vocab_size - 1));
  const RowHistory history = forced(prompt, ids, judged);
  const std::size_t first = prompt.columns.size() - 1;
  Wanted wanted{std::vector<std::uint8_t>(history.columns.size(), 0), false};
  std::fill_n(wanted.logits.begin() + static_cast<std::ptrdiff_t>(first), judged, std::uint8_t{1});
  const Pass<double> truth = oracle.truth(history, wanted);
  const Pass<float> in_float = tolerance.derived ? oracle.in_float(history, wanted) : Pass<float>{};
  for (std::size_t i = 0; i < judged; ++i) {
    const auto& logits = truth.logits[first + i];
    const auto best = std::ranges::max_element(logits);
    const double chosen = logits[static_cast<std::size_t>(ids[i])];
    const double bound = 2 * tolerance.bound(*best, tolerance.derived ? row_noise(in_float.logits[first + i], logits) : 0);
    if (*best - chosen <= bound) continue;
    return wrong(FindingKind::wrong_ids,
                 fmt::format("row {} new token {}: id {} has logit {:.6g}, the best is id {} with {:.6g} (they tie within {:.2g})", row, i, ids[i],
                             chosen, best - logits.begin(), *best, bound),
                 Place{row, i, static_cast<std::size_t>(ids[i]), chosen, *best, bound});
  }
  return std::nullopt;
}

}  // namespace

std::optional<Finding> judge_ids(const Generate& call, const Outcome& outcome, const Rows& ids, const Oracle& oracle, const Tolerance& tolerance) {
  if (auto finding = judge_shape(call, ids)) return finding;
  for (std::size_t row = 0; row < ids.size(); ++row) {
    const std::size_t judged = judged_ids(ids[row], call.eos_token_id);
    if (auto finding = judge_row(row, ids[row], judged, outcome.rows[row], oracle, tolerance)) return finding;
  }
  return std::nullopt;
}

}  // namespace kvproof::harness
