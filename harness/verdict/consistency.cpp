#include "harness/verdict/consistency.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <tuple>
#include <unordered_map>

#include "engine/base/seed.hpp"

namespace kvproof::harness {
namespace {

/// One row of logits or one column of keys and values, wherever it was answered.
struct Spot {
  std::size_t step = 0, row = 0, column = 0;
};


class Consistency {
 public:
  Consistency(const Trace& trace, const std::vector<Expectation>& expected, const Observations& observed, const Tolerance& tolerance, Judgement& judgement)
      : trace_(trace), expected_(expected), observed_(observed), tolerance_(tolerance), judgement_(judgement) {}

  void same() {
    std::unordered_map<std::uint64_t, Spot> first;
    each_logits_row([&](const Spot& spot, const Outcome& outcome) {
      const auto [found, fresh] = first.try_emplace(meaning(spot, outcome, true), spot);
      if (!fresh) compare_logits(found->second, spot);
    });
    moved_data();
  }

  void repeat() {
    std::unordered_map<std::uint64_t, std::size_t> first;
    for (std::size_t step = 0; step < trace_.size(); ++step) {
      if (!logits_of(step)) continue;
      const auto [found, fresh] = first.try_emplace(state_of_call(trace_[step], expected_[step].outcome), step);
      if (!fresh) same_bits(found->second, step);
    }
  }

  void differ() {
    std::unordered_map<std::uint64_t, Spot> first;
    each_logits_row([&](const Spot& spot, const Outcome& outcome) {
      const auto [found, fresh] = first.try_emplace(meaning(spot, outcome, false), spot);
      const Spot& other = found->second;
      if (!fresh && meaning(other, expected_[other.step].outcome, true) != meaning(spot, outcome, true)) must_differ(other, spot);
    });
  }

 private:
  const Tensor* logits_of(std::size_t step) const {
    const auto* answer = observed_[step].reply ? std::get_if<Answer>(&*observed_[step].reply) : nullptr;
    const Outcome& outcome = expected_[step].outcome;
    const bool usable = answer != nullptr && answer->logits && !outcome.refusal && outcome.columns != 0 && std::holds_alternative<Forward>(trace_[step].call);
    if (!usable || answer->logits->shape.size() != 3) return nullptr;
    const auto& shape = answer->logits->shape;
    return shape[0] == outcome.rows.size() && shape[1] == outcome.columns ? &*answer->logits : nullptr;
  }

  template <typename Visit>
  void each_logits_row(const Visit& visit) {
    for (std::size_t step = 0; step < trace_.size(); ++step) {
      if (logits_of(step) == nullptr) continue;
      const Outcome& outcome = expected_[step].outcome;
      for (std::size_t row = 0; row < outcome.rows.size(); ++row)
        for (std::size_t column = 0; column < outcome.columns; ++column)
          if (!outcome.rows[row].hidden(outcome.first + column)) visit(Spot{step, row, column}, outcome);
    }
  }

  /// Hashes of a row's columns are made once per row of a step.
  std::uint64_t meaning(const Spot& spot, const Outcome& outcome, bool positions) {
    auto& hashes = hashes_[{spot.step, spot.row, positions}];
    if (hashes.empty()) hashes = outcome.rows[spot.row].meaning_hashes(positions);
    return mix64(hashes[outcome.first + spot.column] ^ fnv1a(outcome.model));
  }

  std::uint64_t prefix(const Spot& spot, const Outcome& outcome) {
    auto& hashes = prefixes_[{spot.step, spot.row}];
    if (hashes.empty()) hashes = outcome.rows[spot.row].prefix_hashes();
    return hashes[outcome.first + spot.column];
  }

  void note(const Spot& spot) {
    const Outcome& outcome = expected_[spot.step].outcome;
    judgement_.row_hashes.push_back(prefix(spot, outcome) ^ fnv1a(outcome.model));
  }

  std::span<const double> logits_at(const Spot& spot) const {
    const Tensor& tensor = *logits_of(spot.step);
    const std::size_t width = tensor.shape[2];
    return std::span(tensor.values).subspan((spot.row * tensor.shape[1] + spot.column) * width, width);
  }

  void compare_logits(const Spot& want, const Spot& got) {
    const auto left = logits_at(want), right = logits_at(got);
    if (left.size() != right.size()) return;
    Comparison comparison;
    compare_row({left, right, {}}, {got.row, got.column}, tolerance_, comparison);
    if (comparison.worst > judgement_.numbers.worst || !judgement_.numbers.worst_place) judgement_.worst_step = got.step;
    judgement_.numbers.add(comparison);
    note(got);
    if (const auto& at = comparison.first_failing)
      add(FindingKind::wrong_logits, got.step, at,
          fmt::format("row {} column {}: logit {} got {:.8g}, but {:.8g} at step {} row {} column {}, which means the same (bound {:.2g}); {} of {} differ", got.row,
                      got.column, at->element, at->got, at->want, want.step, want.row, want.column, at->bound, comparison.failing, left.size()));
  }

  void must_differ(const Spot& want, const Spot& got) {
    const auto left = logits_at(want), right = logits_at(got);
    Comparison comparison;
    compare_row({left, right, {}}, {got.row, got.column}, tolerance_, comparison);
    ++judgement_.numbers.rows;
    note(got);
    if (comparison.worst > 1) return;
    add(FindingKind::wrong_logits, got.step, comparison.worst_place,
        fmt::format("row {} column {}: the same logits as at step {} row {} column {}, at other positions (they differ by {:.2g} of the bound)", got.row, got.column,
                    want.step, want.row, want.column, comparison.worst));
  }

  void same_bits(std::size_t want, std::size_t got) {
    const Tensor &left = *logits_of(want), &right = *logits_of(got);
    ++judgement_.numbers.rows;
    if (left.shape != right.shape) return;
    for (std::size_t i = 0; i < left.values.size(); ++i) {
      if (std::bit_cast<std::uint64_t>(left.values[i]) == std::bit_cast<std::uint64_t>(right.values[i])) continue;
      const std::size_t width = left.shape[2], row = i / width / left.shape[1], column = i / width % left.shape[1];
      return add(FindingKind::not_repeatable, got, Place{row, column, i % width, right.values[i], left.values[i], 0},
                 fmt::format("row {} column {}: logit {} got {:.9g}, but {:.9g} for the identical call at step {}", row, column, i % width, right.values[i],
                             left.values[i], want));
    }
  }

  /// K and V of one column never change after it was fed, whichever copy of it is read.
  void moved_data() {
    std::map<std::tuple<std::size_t, std::int64_t, std::uint64_t>, Spot> first;  // lane, layer, origin
    for (std::size_t step = 0; step < trace_.size(); ++step) {
      const auto* read = std::get_if<Read>(&trace_[step].call);
      if (read == nullptr || !readable(step)) continue;
      const Outcome& outcome = expected_[step].outcome;
      for (std::size_t row = 0; row < outcome.rows.size(); ++row)
        for (std::size_t column = 0; column < outcome.columns; ++column) {
          if (outcome.present[row][outcome.first + column] == 0) continue;
          const std::uint64_t origin = outcome.rows[row].columns[outcome.first + column].origin;
          const Spot spot{step, row, column};
          const auto [found, fresh] = first.try_emplace({trace_[step].lane, read->layer, origin}, spot);
          if (!fresh) same_column(found->second, spot);
        }
    }
  }

  bool readable(std::size_t step) const {
    const auto* answer = observed_[step].reply ? std::get_if<Answer>(&*observed_[step].reply) : nullptr;
    const Outcome& outcome = expected_[step].outcome;
    if (answer == nullptr || outcome.refusal || !answer->keys || !answer->values || answer->keys->shape.size() != 4) return false;
    const auto& shape = answer->keys->shape;
    return shape == answer->values->shape && shape[0] == outcome.rows.size() && shape[2] == outcome.columns;
  }

  void same_column(const Spot& want, const Spot& got) {
    ++judgement_.numbers.rows;
    const auto& left = std::get<Answer>(*observed_[want.step].reply);
    const auto& right = std::get<Answer>(*observed_[got.step].reply);
    if (!same_heads("key", *left.keys, *right.keys, want, got)) (void)same_heads("value", *left.values, *right.values, want, got);
  }

  /// True if a finding was added.
  bool same_heads(const char* what, const Tensor& left, const Tensor& right, const Spot& want, const Spot& got) {
    const Layout a = heads_layout(left), b = heads_layout(right);
    for (std::size_t element = 0; a.elements == b.elements && element < a.elements; ++element) {
      const double before = left.values[a.index(want.row, want.column, element)], now = right.values[b.index(got.row, got.column, element)];
      if (std::bit_cast<std::uint64_t>(before) == std::bit_cast<std::uint64_t>(now)) continue;
      add(FindingKind::state_changed, got.step, Place{got.row, got.column, element, now, before, 0},
          fmt::format("row {} column {}: {} {} is {:.9g}, but was {:.9g} at step {} row {} column {}, where it is the same column", got.row, got.column, what, element,
                      now, before, want.step, want.row, want.column));
      return true;
    }
    return false;
  }

  void add(FindingKind kind, std::size_t step, std::optional<Place> place, std::string message) {
    judgement_.findings.push_back({kind, step, place, std::move(message)});
  }

  const Trace& trace_;
  const std::vector<Expectation>& expected_;
  const Observations& observed_;
  const Tolerance& tolerance_;
  Judgement& judgement_;
  std::map<std::tuple<std::size_t, std::size_t, bool>, std::vector<std::uint64_t>> hashes_;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::uint64_t>> prefixes_;
};

/// Keeps the order within a step. By insertion: clang 19 refuses the stable_sort of libstdc++ 12, which uses what is deprecated.
void sort_by_step(std::vector<Finding>& findings) {
  for (auto next = findings.begin(); next != findings.end(); ++next)
    std::rotate(std::ranges::upper_bound(findings.begin(), next, next->step, {}, &Finding::step), next, next + 1);
}

}  // namespace

std::uint64_t state_of_call(const Step& step, const Outcome& outcome) {
  const auto& call = std::get<Forward>(step.call);
  std::uint64_t hash = mix64(fnv1a(outcome.model) + fnv1a(outcome.storage) + fnv1a(call.logits) + (call.use_cache ? 1U : 0U));
  for (const RowHistory& row : outcome.rows) {
    hash = mix64(hash ^ row.prefix_hashes().back());
    for (std::size_t c = 1; c < row.columns.size(); ++c) hash = mix64(hash + (row.columns[c].mask == row.columns[c - 1].mask ? 1U : 2U));
  }
  return hash;
}

void judge_consistency(const Trace& trace, const std::vector<Expectation>& expected, const Observations& observed, const LawJudgement& law,
                       const Tolerance& tolerance, Judgement& judgement) {
  Consistency consistency(trace, expected, observed, tolerance, judgement);
  if (law.same) consistency.same();
  if (law.repeat) consistency.repeat();
  if (law.differ) consistency.differ();
  sort_by_step(judgement.findings);
}

}  // namespace kvproof::harness
