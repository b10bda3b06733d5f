#include "harness/verdict/judge_ids.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace kvproof::harness {
namespace {

using Ids = std::vector<std::int64_t>;

Finding wrong(FindingKind kind, std::string message, std::optional<Place> place = std::nullopt) { return {kind, 0, place, std::move(message)}; }

/// How many ids of a row count: up to and with its first eos.
std::size_t judged_ids(const Ids& row, const std::optional<std::int64_t>& eos) {
  const auto end = eos ? std::ranges::find(row, *eos) : row.end();
  return static_cast<std::size_t>(end - row.begin()) + (end == row.end() ? 0U : 1U);
}

/// How many columns these ids must have: all that were asked for, or up to where the last row ended.
std::size_t columns_due(const Generate& call, const Rows& ids) {
  std::size_t longest = 0;
  for (const Ids& row : ids) {
    const std::size_t judged = judged_ids(row, call.eos_token_id);
    if (!call.eos_token_id || judged == 0 || row[judged - 1] != *call.eos_token_id) return static_cast<std::size_t>(call.max_new_tokens);
    longest = std::max(longest, judged);
  }
  return std::min(longest, static_cast<std::size_t>(call.max_new_tokens));
}

std::optional<Finding> judge_shape(const Generate& call, const Rows& ids) {
  if (ids.size() != call.input_ids.size())
    return wrong(FindingKind::wrong_shape, fmt::format("ids of {} rows, expected {}", ids.size(), call.input_ids.size()));
  const std::size_t due = columns_due(call, ids);
  for (const Ids& row : ids)
    if (row.size() != due) return wrong(FindingKind::wrong_shape, fmt::format("a row of {} new ids, expected {}", row.size(), due));
  return std::nullopt;
}

/// The prompt's row with all judged ids but the last behind it: what the engine had to feed.
RowHistory forced(const RowHistory& prompt, const Ids& ids) {
  RowHistory history = prompt;
  std::vector<std::uint8_t> mask = *prompt.columns.back().mask;
  mask.resize(mask.size() + ids.size() - 1, 1);
  const auto shared = std::make_shared<const std::vector<std::uint8_t>>(std::move(mask));
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) history.columns.push_back({ids[i], history.columns.back().position + 1, shared, 0});
  return history;
}

double row_noise(const std::vector<float>& in_float, const std::vector<double>& truth) {
  double noise = 0;
  for (std::size_t v = 0; v < truth.size(); ++v) noise = std::max(noise, std::abs(double{in_float[v]} - truth[v]));
  return noise;
}

/// The oracle's logits for each judged id of one row, and how far apart two of them may be and still tie.
class Forced {
 public:
  Forced(const RowHistory& prompt, const Ids& ids, const Oracle& oracle, const Tolerance& tolerance) : first_(prompt.columns.size() - 1), tolerance_(tolerance) {
    const RowHistory history = forced(prompt, ids);
    Wanted wanted{std::vector<std::uint8_t>(history.columns.size(), 0), false};
    std::fill_n(wanted.logits.begin() + static_cast<std::ptrdiff_t>(first_), ids.size(), std::uint8_t{1});
    truth_ = oracle.truth(history, wanted);
    if (tolerance.derived) in_float_ = oracle.in_float(history, wanted);
    hashes_ = history.prefix_hashes();
  }

  [[nodiscard]] const std::vector<double>& logits(std::size_t i) const { return truth_.logits[first_ + i]; }

  /// One hash per judged id: of the history and query that decide it.
  [[nodiscard]] std::span<const std::uint64_t> hashes() const { return std::span(hashes_).subspan(first_); }

  /// Two logits tie if the oracle's gap between them is at most this.
  [[nodiscard]] double gap(std::size_t i, double larger) const {
    return 2 * tolerance_.bound(larger, tolerance_.derived ? row_noise(in_float_.logits[first_ + i], logits(i)) : 0);
  }

 private:
  std::size_t first_;
  const Tolerance& tolerance_;
  Pass<double> truth_;
  Pass<float> in_float_;
  std::vector<std::uint64_t> hashes_;
};

/// `id` against the id it must tie with; `whose` says where that one comes from.
std::optional<Finding> judge_tie(std::size_t row, std::size_t i, std::int64_t id, std::int64_t other, const char* whose, const Forced& truth) {
  const double chosen = truth.logits(i)[static_cast<std::size_t>(id)], logit = truth.logits(i)[static_cast<std::size_t>(other)];
  const double gap = truth.gap(i, std::max(chosen, logit));
  if (std::abs(logit - chosen) <= gap) return std::nullopt;
  return wrong(FindingKind::wrong_ids,
               fmt::format("row {} new token {}: id {} has logit {:.6g}, {} is id {} with {:.6g} (they tie within {:.2g})", row, i, id, chosen, whose, other,
                           logit, gap),
               Place{row, i, static_cast<std::size_t>(id), chosen, logit, gap});
}

std::optional<Finding> judge_range(std::size_t row, const Ids& ids, std::size_t vocab_size) {
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || static_cast<std::uint64_t>(ids[i]) >= vocab_size)
      return wrong(FindingKind::wrong_ids, fmt::format("row {} new token {}: id {} is not in 0..{}", row, i, ids[i], vocab_size - 1));
  return std::nullopt;
}

std::optional<Finding> judge_best(std::size_t row, const Ids& ids, const Forced& truth) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto best = std::ranges::max_element(truth.logits(i)) - truth.logits(i).begin();
    if (auto finding = judge_tie(row, i, ids[i], best, "the best", truth)) return finding;
  }
  return std::nullopt;
}

/// Only the first difference can be judged: after it the two rows have different histories.
std::optional<Finding> judge_recorded(std::size_t row, const Ids& ids, const Ids& recorded, const Forced& truth) {
  const auto [id, other] = std::ranges::mismatch(ids, recorded);
  if (id == ids.end()) return std::nullopt;
  if (other == recorded.end()) return wrong(FindingKind::wrong_ids, fmt::format("row {}: {} ids, recorded {}", row, ids.size(), recorded.size()));
  return judge_tie(row, static_cast<std::size_t>(id - ids.begin()), *id, *other, "recorded", truth);
}

}  // namespace

JudgedIds judge_ids(const IdsWanted& wanted, const Rows& ids, const Oracle& oracle, const Tolerance& tolerance) {
  JudgedIds judged{judge_shape(wanted.call, ids), {}};
  for (std::size_t row = 0; row < ids.size() && !judged.finding; ++row) {
    const Ids own(ids[row].begin(), ids[row].begin() + static_cast<std::ptrdiff_t>(judged_ids(ids[row], wanted.call.eos_token_id)));
    judged.finding = judge_range(row, own, oracle.facts().vocab_size);
    if (judged.finding) break;
    const Forced truth(wanted.outcome.rows[row], own, oracle, tolerance);
    judged.row_hashes.insert(judged.row_hashes.end(), truth.hashes().begin(), truth.hashes().end());
    judged.finding = judge_best(row, own, truth);
    if (!judged.finding && wanted.recorded) judged.finding = judge_recorded(row, own, (*wanted.recorded)[row], truth);
  }
  return judged;
}

}  // namespace kvproof::harness
