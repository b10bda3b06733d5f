#include "harness/laws/shrink.hpp"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "engine/base/seed.hpp"
#include "harness/laws/removal.hpp"
#include "harness/laws/simpler_calls.hpp"

namespace kvproof::harness {
namespace {

using Models = std::map<std::string, ModelFacts>;

Rows* input_ids_of(Call& call) {
  if (auto* forward = std::get_if<Forward>(&call)) return &forward->input_ids;
  if (auto* generate = std::get_if<Generate>(&call)) return &generate->input_ids;
  return nullptr;
}

Removal of_step(std::size_t step) { return {.steps = {step}}; }
Removal of_row(std::size_t step, std::size_t row) { return {.rows = {{step, row}}}; }
Removal of_column(std::size_t step, std::size_t column) { return {.columns = {{step, column}}}; }

/// Column `index` of every history: what was fed there by whichever call. A call that feeds nothing else goes whole.
Removal of_history_column(const std::vector<StepShape>& shapes, std::size_t index) {
  Removal removal;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].past > index || index >= shapes[i].past + shapes[i].columns) continue;
    if (shapes[i].columns == 1) removal.steps.insert(i);
    else removal.columns.insert({i, index - shapes[i].past});
  }
  return removal;
}

/// Row `row` of every batch that has more than one.
Removal of_batch_row(const std::vector<StepShape>& shapes, std::size_t row) {
  Removal removal;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    if (shapes[i].rows > 1 && row < shapes[i].rows) removal.rows.insert({i, row});
  return removal;
}

class Shrinker {
 public:
  Shrinker(TraceFile file, const Models& models, const StillFails& still_fails, std::size_t budget)
      : file_(std::move(file)), models_(models), still_fails_(still_fails), budget_(budget) {}

  Shrunk run() {
    bool helped = true;
    while (helped && !exhausted_) {
      helped = steps();
      helped = rows() || helped;
      helped = columns() || helped;
      helped = header() || helped;
      helped = calls() || helped;
      helped = masks() || helped;
      helped = tokens() || helped;
    }
    return {std::move(file_), asked_, !exhausted_};
  }

 private:
  /// Takes the candidate over if it still fails. What was asked once is not asked again.
  bool keep(TraceFile candidate) {
    if (exhausted_ || candidate == file_ || candidate.trace.empty()) return false;
    const std::uint64_t key = fnv1a(format_trace_file(candidate));
    if (passed_.contains(key)) return false;
    if (asked_ == budget_) {
      exhausted_ = true;
      return false;
    }
    ++asked_;
    if (!still_fails_(candidate)) {
      passed_.insert(key);
      return false;
    }
    file_ = std::move(candidate);
    return true;
  }

  bool keep_trace(Trace trace) {
    TraceFile candidate = file_;
    candidate.trace = std::move(trace);
    return keep(std::move(candidate));
  }

  bool remove(const Removal& removal) { return keep_trace(without(file_.trace, removal, models_)); }

  [[nodiscard]] std::vector<StepShape> shapes() const { return shapes_of(file_.trace, models_); }

  /// Chunks of halves, quarters, … singles of [0, n), the last first; `removal_of(from, to)` says what a chunk stands for.
  bool in_chunks(std::size_t n, const auto& removal_of) {
    bool helped = false;
    for (std::size_t size = std::max<std::size_t>(1, n / 2);; size /= 2) {
      for (std::size_t to = n; to > 0;) {
        const std::size_t from = to - std::min(to, size);
        if (remove(removal_of(from, to))) {
          n -= to - from;
          helped = true;
        }
        to = from;
      }
      if (size <= 1) return helped;
    }
  }

  bool steps() {
    return in_chunks(file_.trace.size(), [](std::size_t from, std::size_t to) {
      Removal removal;
      for (std::size_t i = from; i < to; ++i) removal.steps.insert(i);
      return removal;
    });
  }

  bool rows() {
    bool helped = false;
    std::size_t most = 0;
    for (const StepShape& shape : shapes()) most = std::max(most, shape.rows);
    for (std::size_t row = most; row-- > 0;) helped = remove(of_batch_row(shapes(), row)) || helped;
    for (std::size_t i = 0; i < file_.trace.size(); ++i)
      for (std::size_t row = shapes()[i].rows; row-- > 0;)
        if (shapes()[i].rows > 1) helped = remove(of_row(i, row)) || helped;
    return helped;
  }

  bool columns() {
    bool helped = false;
    std::size_t longest = 0;
    for (const StepShape& shape : shapes()) longest = std::max(longest, shape.past + shape.columns);
    for (std::size_t index = longest; index-- > 0;) helped = remove(of_history_column(shapes(), index)) || helped;
    for (std::size_t i = 0; i < file_.trace.size(); ++i) helped = columns_of_step(i) || helped;
    return helped;
  }

  bool columns_of_step(std::size_t step) {
    const std::size_t n = shapes()[step].columns;
    if (n < 2) return false;
    return in_chunks(n, [&](std::size_t from, std::size_t to) {
      Removal removal;
      for (std::size_t t = from; t < to; ++t) removal.columns.insert({step, t});
      return shapes()[step].columns > to - from ? removal : Removal{};
    });
  }

  bool header() {
    bool helped = false;
    TraceFile calm = file_;
    calm.run.poison = false;
    helped = keep(std::move(calm)) || helped;
    helped = change([](Trace& trace) {
      for (Step& step : trace) step.lane = 0;
    }) || helped;
    helped = change([](Trace& trace) {
      for (Step& step : trace) on_main(step.call);
    }) || helped;
    TraceFile fewer = file_;
    std::erase_if(fewer.models, [&](const auto& model) { return model.first != "main" && !used(model.first); });
    return keep(std::move(fewer)) || helped;
  }

  static void on_main(Call& call) {
    if (auto* made = std::get_if<NewCache>(&call)) made->model.reset();
    if (auto* forward = std::get_if<Forward>(&call)) forward->model.reset();
    if (auto* generate = std::get_if<Generate>(&call)) generate->model.reset();
  }

  [[nodiscard]] bool used(const std::string& model) const {
    return std::ranges::any_of(file_.trace, [&](const Step& step) { return model_of(step.call) == model; });
  }

  bool calls() {
    bool helped = false;
    for (std::size_t i = 0; i < file_.trace.size(); ++i)
      while (simplify_call(i)) helped = true;
    return helped;
  }

  bool simplify_call(std::size_t step) {
    for (Call& simpler : simpler_calls(file_.trace[step].call))
      if (change([&](Trace& trace) { trace[step].call = std::move(simpler); })) return true;
    return false;
  }

  /// A change of values; what the file records of lengths and codes follows it.
  bool change(const auto& make) {
    Trace trace = file_.trace;
    make(trace);
    return keep_trace(without(trace, {}, models_));
  }

  /// Hidden columns become visible, one column of one row at a time, in every mask from the first on that says so.
  bool masks() {
    bool helped = false;
    for (std::size_t i = 0; i < file_.trace.size(); ++i) {
      const auto* forward = std::get_if<Forward>(&file_.trace[i].call);
      const Rows mask = forward != nullptr ? forward->attention_mask.value_or(Rows{}) : Rows{};
      for (std::size_t row = 0; row < mask.size(); ++row)
        for (std::size_t c = 0; c < mask[row].size(); ++c)
          if (mask[row][c] == 0) helped = change([&](Trace& trace) { show(trace, i, row, c); }) || helped;
    }
    return helped;
  }

  static void show(Trace& trace, std::size_t from, std::size_t row, std::size_t column) {
    for (std::size_t i = from; i < trace.size(); ++i) {
      auto* forward = std::get_if<Forward>(&trace[i].call);
      if (forward == nullptr || !forward->attention_mask || row >= forward->attention_mask->size()) continue;
      auto& bits = (*forward->attention_mask)[row];
      if (column < bits.size()) bits[column] = 1;
    }
  }

  bool tokens() {
    bool helped = false;
    std::set<std::int64_t> values;
    for (Step& step : file_.trace)
      if (const Rows* ids = input_ids_of(step.call))
        for (const auto& row : *ids) values.insert(row.begin(), row.end());
    std::int64_t next = 1;  // ids that must differ become 0, 1, 2, …
    for (const std::int64_t value : values) {
      if (value <= 0) continue;
      const bool zero = rename(value, 0), small = !zero && rename(value, next);
      helped = zero || small || helped;
      if (small || (!zero && value == next)) ++next;
    }
    for (std::size_t i = 0; i < file_.trace.size(); ++i) helped = zero_tokens(i) || helped;
    return helped;
  }

  /// Everywhere at once, so that equal tokens stay equal.
  bool rename(std::int64_t from, std::int64_t to) {
    return from > to && change([&](Trace& trace) {
      for (Step& step : trace)
        if (Rows* ids = input_ids_of(step.call))
          for (auto& row : *ids) std::ranges::replace(row, from, to);
    });
  }

  bool zero_tokens(std::size_t step) {
    bool helped = false;
    const Rows* ids = input_ids_of(file_.trace[step].call);
    const Rows before = ids != nullptr ? *ids : Rows{};
    for (std::size_t row = 0; row < before.size(); ++row)
      for (std::size_t t = 0; t < before[row].size(); ++t)
        if (before[row][t] > 0) helped = change([&](Trace& trace) { (*input_ids_of(trace[step].call))[row][t] = 0; }) || helped;
    return helped;
  }

  TraceFile file_;
  const Models& models_;
  const StillFails& still_fails_;
  const std::size_t budget_;
  std::size_t asked_ = 0;
  bool exhausted_ = false;
  std::unordered_set<std::uint64_t> passed_;
};

}  // namespace

Shrunk shrink(TraceFile file, const Models& models, const StillFails& still_fails, std::size_t budget) {
  return Shrinker(std::move(file), models, still_fails, budget).run();
}

std::vector<Trace> single_removals(const Trace& trace, const Models& models) {
  const std::vector<StepShape> shapes = shapes_of(trace, models);
  std::vector<Removal> removals;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    removals.push_back(of_step(i));
    for (std::size_t row = 0; shapes[i].rows > 1 && row < shapes[i].rows; ++row) removals.push_back(of_row(i, row));
    for (std::size_t t = 0; shapes[i].columns > 1 && t < shapes[i].columns; ++t) removals.push_back(of_column(i, t));
  }
  std::vector<Trace> traces;
  for (const Removal& removal : removals) traces.push_back(without(trace, removal, models));
  return traces;
}

}  // namespace kvproof::harness
