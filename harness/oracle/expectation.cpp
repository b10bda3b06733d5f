#include "harness/oracle/expectation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "engine/base/error.hpp"
#include "engine/base/seed.hpp"

namespace kvproof::harness {
namespace {

/// Where a row's numbers are to be had: columns [0, history) of a leaf.
struct Leaf {
  std::string model;
  const RowHistory* history = nullptr;
  Wanted wanted;
  Pass<double> truth;
  Pass<float> in_float;
};

/// One row of one step that needs numbers.
struct Need {
  std::size_t step = 0, row = 0, leaf = 0;
};

bool wants_numbers(const Step& step) { return std::holds_alternative<Forward>(step.call) || std::holds_alternative<Read>(step.call); }

/// Finds the distinct final histories: a row that is a prefix of a longer one is a slice of it.
class Leaves {
 public:
  explicit Leaves(Recompute recompute) : recompute_(recompute) {}

  /// The outcomes are borrowed until compute() is done.
  void plan(const Trace& trace, const std::vector<Outcome>& outcomes) {
    for (std::size_t step = 0; step < trace.size(); ++step)
      for (std::size_t row = 0; wants_numbers(trace[step]) && row < outcomes[step].rows.size(); ++row) needs_.push_back({step, row, 0});
    std::vector<std::pair<std::size_t, std::size_t>> longest_first;  // columns, need
    for (std::size_t i = 0; i < needs_.size(); ++i) longest_first.emplace_back(outcomes[needs_[i].step].rows[needs_[i].row].columns.size(), i);
    std::ranges::sort(longest_first, std::greater{});  // by the number of the need where lengths are equal: no order is left to chance
    for (const auto& [columns, i] : longest_first) place(needs_[i], outcomes[needs_[i].step], trace[needs_[i].step]);
  }

  void compute(const Oracles& oracles, bool with_noise) {
    for (Leaf& leaf : leaves_) {
      const Oracle& oracle = *oracles.at(leaf.model);
      leaf.truth = oracle.truth(*leaf.history, leaf.wanted);
      if (with_noise) leaf.in_float = oracle.in_float(*leaf.history, leaf.wanted);
    }
  }

  [[nodiscard]] const std::vector<Need>& needs() const noexcept { return needs_; }
  [[nodiscard]] const Leaf& operator[](std::size_t index) const { return leaves_[index]; }

 private:
  void place(Need& need, const Outcome& outcome, const Step& step) {
    const RowHistory& history = outcome.rows[need.row];
    const auto hashes = history.prefix_hashes();
    const std::uint64_t name = fnv1a(outcome.model);
    const auto known = hashes.empty() ? by_prefix_.end() : by_prefix_.find(hashes.back() ^ name);
    if (known != by_prefix_.end() && recompute_ == Recompute::once_per_final_history) {
      need.leaf = known->second;
    } else {
      need.leaf = leaves_.size();
      leaves_.push_back({outcome.model, &history, {std::vector<std::uint8_t>(history.columns.size(), 0), false}, {}, {}});
      for (const std::uint64_t hash : hashes) by_prefix_.try_emplace(hash ^ name, need.leaf);
    }
    Wanted& wanted = leaves_[need.leaf].wanted;
    if (std::holds_alternative<Read>(step.call)) wanted.keys_values = true;
    else std::fill_n(wanted.logits.begin() + static_cast<std::ptrdiff_t>(outcome.first), outcome.columns, std::uint8_t{1});
  }

  Recompute recompute_;
  std::vector<Need> needs_;
  std::vector<Leaf> leaves_;
  std::unordered_map<std::uint64_t, std::size_t> by_prefix_;
};

bool asks_for_numbers(const Step& step, const Outcome& outcome) {
  return !outcome.refusal && wants_numbers(step) && (std::holds_alternative<Read>(step.call) || outcome.columns != 0);
}

/// The shapes of a step's answer, without values.
ExpectedNumbers shapes_of(const Step& step, const Outcome& outcome, const ModelFacts& model) {
  ExpectedNumbers numbers;
  const std::size_t batch = outcome.rows.size(), columns = outcome.columns;
  if (std::holds_alternative<Forward>(step.call)) numbers.logits = Tensor{{batch, columns, model.vocab_size}, {}};
  else numbers.keys = numbers.values = Tensor{{batch, model.n_head, columns, model.head_dim}, {}};
  return numbers;
}

/// Gives the tensors of a step room; rows are filled in one by one.
void make_room(ExpectedNumbers& numbers, const Outcome& outcome, bool with_noise) {
  numbers.compared.assign(outcome.rows.size() * outcome.columns, 0);
  const auto fill = [&](std::optional<Tensor>& tensor, std::optional<Tensor>& noise) {
    if (!tensor) return;
    tensor->values.resize(std::accumulate(tensor->shape.begin(), tensor->shape.end(), std::size_t{1}, std::multiplies{}));
    if (with_noise) noise = tensor;
  };
  fill(numbers.logits, numbers.logits_noise);
  fill(numbers.keys, numbers.keys_noise);
  fill(numbers.values, numbers.values_noise);
}

void fill_compared(ExpectedNumbers& numbers, const Outcome& outcome, std::size_t row, bool read) {
  const RowHistory& history = outcome.rows[row];
  for (std::size_t i = 0; i < outcome.columns; ++i) {
    const std::size_t column = outcome.first + i;
    const bool hidden = read ? outcome.present[row][column] == 0 : history.hidden(column);
    numbers.compared[row * outcome.columns + i] = hidden ? 0 : 1;
  }
}

template <typename Get>
void fill_logits(Tensor& tensor, const Outcome& outcome, std::size_t row, const Get& get) {
  const std::size_t width = tensor.shape[2];
  for (std::size_t i = 0; i < outcome.columns; ++i)
    for (std::size_t v = 0; v < width; ++v) tensor.values[(row * outcome.columns + i) * width + v] = get(outcome.first + i, v);
}

/// [n, H * D] of a pass into [B, H, S, D].
template <typename Get>
void fill_heads(Tensor& tensor, const Outcome& outcome, std::size_t row, const Get& get) {
  const std::size_t heads = tensor.shape[1], columns = tensor.shape[2], dim = tensor.shape[3];
  for (std::size_t h = 0; h < heads; ++h)
    for (std::size_t s = 0; s < columns; ++s)
      for (std::size_t d = 0; d < dim; ++d)
        tensor.values[((row * heads + h) * columns + s) * dim + d] = get(((outcome.first + s) * heads + h) * dim + d);
}

void fill_forward(ExpectedNumbers& numbers, const Outcome& outcome, const Need& need, const Leaf& leaf) {
  const auto truth = [&](std::size_t column, std::size_t v) { return leaf.truth.logits[column][v]; };
  fill_logits(*numbers.logits, outcome, need.row, truth);
  if (!numbers.logits_noise) return;
  fill_logits(*numbers.logits_noise, outcome, need.row,
              [&](std::size_t column, std::size_t v) { return std::abs(double{leaf.in_float.logits[column][v]} - truth(column, v)); });
}

void fill_read(ExpectedNumbers& numbers, const Outcome& outcome, const Need& need, const Leaf& leaf, std::size_t layer) {
  const auto fill = [&](Tensor& tensor, std::optional<Tensor>& noise, const auto& truth, const auto& in_float) {
    fill_heads(tensor, outcome, need.row, [&](std::size_t i) { return truth[layer][i]; });
    if (noise) fill_heads(*noise, outcome, need.row, [&](std::size_t i) { return std::abs(double{in_float[layer][i]} - truth[layer][i]); });
  };
  fill(*numbers.keys, numbers.keys_noise, leaf.truth.keys, leaf.in_float.keys);
  fill(*numbers.values, numbers.values_noise, leaf.truth.values, leaf.in_float.values);
}

void fill_numbers(std::vector<Expectation>& expectations, const Trace& trace, const Oracles& oracles, const Leaves& leaves, bool with_noise) {
  for (std::size_t step = 0; step < trace.size(); ++step) {
    const Outcome& outcome = expectations[step].outcome;
    if (!asks_for_numbers(trace[step], outcome)) continue;
    expectations[step].numbers = shapes_of(trace[step], outcome, oracles.at(outcome.model)->facts());
    make_room(*expectations[step].numbers, outcome, with_noise);
  }
  for (const Need& need : leaves.needs()) {
    Expectation& expectation = expectations[need.step];
    if (!expectation.numbers) continue;
    const auto* read = std::get_if<Read>(&trace[need.step].call);
    fill_compared(*expectation.numbers, expectation.outcome, need.row, read != nullptr);
    if (read != nullptr) fill_read(*expectation.numbers, expectation.outcome, need, leaves[need.leaf], static_cast<std::size_t>(read->layer));
    else fill_forward(*expectation.numbers, expectation.outcome, need, leaves[need.leaf]);
  }
}

void require_agreement(const Step& step, const Outcome& outcome, const std::string& where, bool absent_means_accepted) {
  const auto name = [](const std::optional<Code>& code) { return code ? std::string(code_name(*code)) : "accepted"; };
  const std::optional<Code> found = outcome.refusal ? std::optional(outcome.refusal->code) : std::nullopt;
  if ((step.error || absent_means_accepted) && step.error != found)
    throw DataError({where, fmt::format("the file says {}", name(step.error)), fmt::format("{} (docs/contract.md)", name(found)),
                     outcome.refusal ? outcome.refusal->message : ""});
  if (step.expect && !outcome.refusal && *step.expect != *outcome.length)
    throw DataError({where, fmt::format("the file says length {}", *step.expect), fmt::format("{} (docs/contract.md)", *outcome.length), ""});
}

/// The recorded tensors must have the shapes that the contract makes of the trace.
void require_shape(const std::optional<Tensor>& recorded, const std::vector<std::size_t>& expected, const std::string& where) {
  if (recorded && recorded->shape != expected)
    throw DataError({where, fmt::format("recorded numbers of shape [{}]", fmt::join(recorded->shape, ", ")),
                     fmt::format("[{}], which the contract makes of the trace", fmt::join(expected, ", ")), ""});
}

/// No row may count of which the contract says nothing: it would fail a correct engine.
void require_unspecified_rows_left_out(const std::vector<std::uint8_t>& recorded, const ExpectedNumbers& contract, const std::string& where) {
  for (std::size_t i = 0; i < recorded.size(); ++i)
    if (recorded[i] != 0 && contract.compared[i] == 0)
      throw DataError({where, fmt::format("compared[{}] is 1", i), "0, since that column is hidden (docs/contract.md)", ""});
}

void take_recorded(Expectation& expectation, const Step& step, const Recorded& recorded, const ModelFacts& model, const std::string& where) {
  expectation.recorded_ids = recorded.ids;
  if (recorded.ids) return;
  ExpectedNumbers contract = shapes_of(step, expectation.outcome, model);
  require_shape(recorded.logits, contract.logits.value_or(Tensor{}).shape, where);
  require_shape(recorded.keys, contract.keys.value_or(Tensor{}).shape, where);
  make_room(contract, expectation.outcome, false);
  for (std::size_t row = 0; row < expectation.outcome.rows.size(); ++row)
    fill_compared(contract, expectation.outcome, row, recorded.keys.has_value());
  require_unspecified_rows_left_out(recorded.compared, contract, where);
  expectation.numbers = ExpectedNumbers{recorded.logits, recorded.keys, recorded.values, recorded.compared, {}, {}, {}};
}

}  // namespace

std::vector<Outcome> outcomes_of(const Trace& trace, const std::map<std::string, ModelFacts>& models, const std::string& where,
                                 bool absent_error_means_accepted) {
  std::map<std::size_t, World> lanes;
  std::vector<Outcome> outcomes;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    World& world = lanes.try_emplace(trace[i].lane, models).first->second;
    outcomes.push_back(world.apply(trace[i].call));
    require_agreement(trace[i], outcomes.back(), fmt::format("{}: step {}", where, i), absent_error_means_accepted);
  }
  return outcomes;
}

std::vector<Outcome> outcomes_of(const std::vector<Expectation>& expectations) {
  std::vector<Outcome> outcomes;
  outcomes.reserve(expectations.size());
  for (const Expectation& each : expectations) outcomes.push_back(each.outcome);
  return outcomes;
}

std::vector<Expectation> expect_shapes(const Trace& trace, const std::map<std::string, ModelFacts>& models) {
  std::vector<Expectation> expectations;
  for (Outcome& outcome : outcomes_of(trace, models, "trace", false)) {
    const Step& step = trace[expectations.size()];
    std::optional<ExpectedNumbers> shapes;
    if (asks_for_numbers(step, outcome)) shapes = shapes_of(step, outcome, models.at(outcome.model));
    expectations.push_back({std::move(outcome), std::move(shapes), std::nullopt});
  }
  return expectations;
}

std::vector<Expectation> expect_from_oracle(const Trace& trace, const Oracles& oracles, bool with_noise, Recompute recompute) {
  const std::vector<Outcome> outcomes = outcomes_of(trace, facts_of(oracles), "trace", false);
  Leaves leaves(recompute);
  leaves.plan(trace, outcomes);
  leaves.compute(oracles, with_noise);
  std::vector<Expectation> expectations;
  for (const Outcome& outcome : outcomes) expectations.push_back({outcome, std::nullopt, std::nullopt});
  fill_numbers(expectations, trace, oracles, leaves, with_noise);
  return expectations;
}

ExpectedNumbers numbers_of(const Call& call, const Outcome& outcome, const Oracles& oracles) {
  const Trace trace{Step{call, std::nullopt, std::nullopt, 0}};
  const std::vector<Outcome> outcomes{outcome};
  std::vector<Expectation> expectations{{outcome, std::nullopt, std::nullopt}};
  Leaves leaves(Recompute::at_every_step);
  leaves.plan(trace, outcomes);
  leaves.compute(oracles, false);
  fill_numbers(expectations, trace, oracles, leaves, false);
  return expectations.front().numbers.value_or(ExpectedNumbers{});
}

std::vector<Expectation> expect_from_golden(const GoldenFile& golden, const ModelFacts& model) {
  std::vector<Expectation> expectations;
  for (Outcome& outcome : outcomes_of(golden.trace, {{"main", model}}, golden.where, true))
    expectations.push_back({std::move(outcome), std::nullopt, std::nullopt});
  for (const auto& [step, recorded] : golden.recorded)
    take_recorded(expectations[step], golden.trace[step], recorded, model, fmt::format("{}: step {}", golden.where, step));
  return expectations;
}

void add_noise(std::vector<Expectation>& expectations, const Trace& trace, const Oracles& oracles) {
  const std::vector<Expectation> computed = expect_from_oracle(trace, oracles, true);
  for (std::size_t step = 0; step < expectations.size(); ++step) {
    if (!expectations[step].numbers || !computed[step].numbers) continue;
    expectations[step].numbers->logits_noise = computed[step].numbers->logits_noise;
    expectations[step].numbers->keys_noise = computed[step].numbers->keys_noise;
    expectations[step].numbers->values_noise = computed[step].numbers->values_noise;
  }
}

}  // namespace kvproof::harness
