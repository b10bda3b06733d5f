// Two worlds are played side by side: the trace as it was and as it becomes. A column is known by the step that fed it and its place
// there, a row by its index in the old world; so a mask of the old world can be asked for the bit of a column of the new one.
#include "harness/laws/removal.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "harness/history/world.hpp"

namespace kvproof::harness {
namespace {

using ColumnId = std::pair<std::size_t, std::size_t>;  // step, t: rises along every history
using Indices = std::vector<std::size_t>;

/// What a cache holds: which columns, and which old rows.
struct Held {
  std::vector<ColumnId> columns;
  Indices rows;
};

Indices up_to(std::size_t n) {
  Indices all(n);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// A world that knows where columns and rows come from.
class Traced {
 public:
  explicit Traced(const std::map<std::string, ModelFacts>& models) : world_(models) {}

  [[nodiscard]] const Held& held(const Call& call) const {
    static const Held kNothing;
    const auto name = cache_of(call);
    const auto found = name ? held_.find(std::string(*name)) : held_.end();
    return found != held_.end() ? found->second : kNothing;
  }
  [[nodiscard]] const CacheState* state(const Call& call) const {
    const auto name = cache_of(call);
    return name ? world_.find(std::string(*name)) : nullptr;
  }

  /// `columns` are the new columns of a forward, `rows` the old rows of a batch that begins, or of a gather's result.
  Outcome play(const Call& call, const std::vector<ColumnId>& columns, const Indices& rows) {
    Outcome outcome = world_.apply(call);
    if (!outcome.refusal) std::visit([&](const auto& each) { follow(each, columns, rows); }, call);
    return outcome;
  }

 private:
  void follow(const NewCache& call, const auto&, const Indices&) { held_[call.cache] = {}; }
  void follow(const Forward& call, const auto& columns, const Indices& rows) {
    if (!call.cache || !call.use_cache) return;
    Held& held = held_[*call.cache];
    if (held.columns.empty()) held.rows = rows;
    held.columns.insert(held.columns.end(), columns.begin(), columns.end());
  }
  void follow(const Clone& call, const auto&, const Indices&) { held_[call.cache] = held_[call.from]; }
  void follow(const Crop& call, const auto&, const Indices&) {
    Held& held = held_[call.cache];
    held.columns.resize(static_cast<std::size_t>(call.length));
    if (call.length == 0) held.rows.clear();
  }
  void follow(const Gather& call, const auto&, const Indices& rows) { held_[call.cache].rows = rows; }
  void follow(const Reset& call, const auto&, const Indices&) { held_[call.cache] = {}; }
  void follow(const Drop& call, const auto&, const Indices&) { held_.erase(call.cache); }
  void follow(const Save& call, const auto&, const Indices&) { saved_[call.to] = held_[call.cache]; }
  void follow(const Load& call, const auto&, const Indices&) { held_[call.cache] = saved_[call.from]; }
  void follow(const auto&, const auto&, const Indices&) {}

  World world_;
  std::map<std::string, Held> held_, saved_;
};

Rows picked(const Rows& rows, const Indices& pick, std::size_t batch) {
  Rows result;
  for (const std::size_t row : pick)
    if (row < rows.size()) result.push_back(rows[row]);
  for (std::size_t row = batch; row < rows.size(); ++row) result.push_back(rows[row]);  // more rows than input_ids has: that stays wrong
  return result;
}

/// One step on its way from the old world to the new one.
struct Move {
  const Removal& removal;
  std::size_t step;
  const Held& before;    ///< in the old world
  bool refused;          ///< in the old world
  const Held& now;       ///< in the new world
  const CacheState* state;
  std::vector<ColumnId> fresh;  ///< out: new columns that stay
  Indices rows;                 ///< out: rows of a batch that begins

  [[nodiscard]] Indices staying_rows(std::size_t n) const {
    Indices rows_left;
    for (std::size_t row = 0; row < n; ++row)
      if (!removal.rows.contains({step, row})) rows_left.push_back(row);
    return rows_left;
  }

  /// Which rows of a forward's arrays go on.
  [[nodiscard]] Indices pick_rows(std::size_t n) const {
    if (now.rows.empty() || n == 0) return staying_rows(n);
    Indices pick;
    if (before.rows.empty()) {  // a batch that began here in the old world now meets one that is there: it is cut to size
      for (std::size_t row = 0; row < now.rows.size(); ++row) pick.push_back(std::min(row, n - 1));
      return pick;
    }
    const bool wrong_number = refused && n != before.rows.size();
    for (const std::size_t row : now.rows)
      if (!wrong_number || row < n) pick.push_back(std::min(row, n - 1));
    for (std::size_t row = before.rows.size(); wrong_number && row < n; ++row) pick.push_back(row);
    return pick;
  }

  void cut_columns(Rows& rows_of_call) const {
    for (auto& row : rows_of_call)
      for (std::size_t t = row.size(); t-- > 0;)
        if (removal.columns.contains({step, t})) row.erase(row.begin() + static_cast<std::ptrdiff_t>(t));
  }

  /// The old mask row as it reads in the new world; a wrong length stays as wrong as it was.
  [[nodiscard]] std::vector<std::int64_t> moved_mask(const std::vector<std::int64_t>& old, std::size_t old_fresh, std::size_t new_row) const {
    const std::size_t old_columns = before.columns.size() + old_fresh;
    std::vector<std::int64_t> bits;
    if (old.size() == old_fresh && old_fresh != old_columns) {  // the new part alone
      for (const ColumnId& id : fresh) bits.push_back(old[id.second]);
      return bits;
    }
    for (std::size_t c = 0; c < now.columns.size(); ++c) {
      const auto found = std::ranges::lower_bound(before.columns, now.columns[c]);
      const bool known = found != before.columns.end() && *found == now.columns[c];
      const auto index = static_cast<std::size_t>(found - before.columns.begin());
      if (known && index < old.size()) bits.push_back(old[index]);
      else bits.push_back(!known && new_row < state->mask.size() ? state->mask[new_row][c] : 1);
    }
    for (const ColumnId& id : fresh) {
      const std::size_t index = before.columns.size() + id.second;
      bits.push_back(index < old.size() ? old[index] : 1);
    }
    if (old.size() == old_columns) return bits;
    if (old.size() > old_columns) bits.insert(bits.end(), old.size() - old_columns, 1);
    else bits.resize(bits.size() - std::min(bits.size(), old_columns - old.size()));
    return bits;
  }

  void note_fresh(const Rows& input_ids) {
    const std::size_t columns = input_ids.empty() ? 0 : input_ids.front().size();
    for (std::size_t t = 0; t < columns; ++t)
      if (!removal.columns.contains({step, t})) fresh.push_back({step, t});
  }

  void rewrite(Forward& call) {
    const std::size_t batch = call.input_ids.size(), old_fresh = batch == 0 ? 0 : call.input_ids.front().size();
    note_fresh(call.input_ids);
    rows = pick_rows(batch);
    if (call.attention_mask) {
      *call.attention_mask = picked(*call.attention_mask, rows, batch);
      for (std::size_t row = 0; row < call.attention_mask->size(); ++row)
        (*call.attention_mask)[row] = moved_mask((*call.attention_mask)[row], old_fresh, row);
    }
    if (call.position_ids) *call.position_ids = picked(*call.position_ids, rows, batch);
    if (call.position_ids) cut_columns(*call.position_ids);
    call.input_ids = picked(call.input_ids, rows, batch);
    cut_columns(call.input_ids);
  }

  void rewrite(Generate& call) {
    const std::size_t batch = call.input_ids.size();
    rows = staying_rows(batch);
    for (Rows* array : {&call.input_ids, call.attention_mask ? &*call.attention_mask : nullptr})
      if (array != nullptr) {
        *array = picked(*array, rows, batch);
        cut_columns(*array);
      }
  }

  /// The columns that were kept are kept; beyond the end stays beyond the end.
  void rewrite(Crop& call) const {
    const auto past = static_cast<std::int64_t>(before.columns.size()), now_past = static_cast<std::int64_t>(now.columns.size());
    if (call.length < 0) return;
    if (call.length >= past) {
      call.length = now_past + (call.length - past);
      return;
    }
    std::int64_t kept = 0;
    for (std::int64_t c = 0; c < now_past; ++c) {
      const auto found = std::ranges::lower_bound(before.columns, now.columns[static_cast<std::size_t>(c)]);
      if (found - before.columns.begin() < call.length) kept = c + 1;
    }
    call.length = kept;
  }

  [[nodiscard]] std::optional<std::size_t> place_of(std::int64_t old_row) const {
    const auto found = std::ranges::find(now.rows, static_cast<std::size_t>(old_row));
    if (old_row < 0 || found == now.rows.end()) return std::nullopt;
    return static_cast<std::size_t>(found - now.rows.begin());
  }

  void rewrite(Gather& call) {
    if (now.rows.empty()) return;
    if (refused) return rewrite_refused(call);
    for (std::size_t i = 0; i < call.rows.size(); ++i)
      if (place_of(call.rows[i]) && !removal.rows.contains({step, i})) rows.push_back(i);
    if (state->fixed_batch()) keep_number(call.rows.size());
    std::vector<std::int64_t> moved;
    for (const std::size_t i : rows) moved.push_back(static_cast<std::int64_t>(place_of(call.rows[i]).value_or(0)));
    call.rows = std::move(moved);
  }

  /// A static cache keeps its number of rows: too many results are dropped, missing ones repeat the first row.
  void keep_number(std::size_t results) {
    if (rows.size() > now.rows.size()) rows.resize(now.rows.size());
    for (std::size_t i = 0; i < results && rows.size() < now.rows.size(); ++i)
      if (std::ranges::find(rows, i) == rows.end()) rows.push_back(i);
    std::ranges::sort(rows);
  }

  void rewrite_refused(Gather& call) const {
    const auto old_batch = static_cast<std::int64_t>(before.rows.size()), now_batch = static_cast<std::int64_t>(now.rows.size());
    std::vector<std::int64_t> moved;
    for (const std::int64_t row : call.rows) {
      if (row < 0) moved.push_back(row);
      else if (row >= old_batch) moved.push_back(now_batch + (row - old_batch));
      else if (const auto place = place_of(row)) moved.push_back(static_cast<std::int64_t>(*place));
    }
    call.rows = std::move(moved);
  }

  void rewrite(auto&) const {}
};

std::vector<ColumnId> columns_of_step(const Call& call, std::size_t step) {
  std::vector<ColumnId> ids;
  if (const auto* forward = std::get_if<Forward>(&call))
    for (std::size_t t = 0; !forward->input_ids.empty() && t < forward->input_ids.front().size(); ++t) ids.emplace_back(step, t);
  return ids;
}

std::size_t rows_of_call(const Call& call) {
  if (const auto* forward = std::get_if<Forward>(&call)) return forward->input_ids.size();
  if (const auto* gather = std::get_if<Gather>(&call)) return gather->rows.size();
  if (const auto* generate = std::get_if<Generate>(&call)) return generate->input_ids.size();
  return 0;
}

/// Rows can be taken out where they begin.
bool rows_begin(const Call& call, const Held& before, const CacheState* state, bool refused) {
  if (std::holds_alternative<Gather>(call)) return !refused && !state->fixed_batch();
  return std::holds_alternative<Generate>(call) || (std::holds_alternative<Forward>(call) && before.columns.empty());
}

std::size_t new_columns(const Call& call) {
  const Rows* input_ids = nullptr;
  if (const auto* forward = std::get_if<Forward>(&call)) input_ids = &forward->input_ids;
  if (const auto* generate = std::get_if<Generate>(&call)) input_ids = &generate->input_ids;
  return input_ids == nullptr || input_ids->empty() ? 0 : input_ids->front().size();
}

/// What the file said of the step, now that the contract may say something else.
void follow_contract(Step& step, const Outcome& outcome) {
  if (step.error) step.error = outcome.refusal ? std::optional(outcome.refusal->code) : std::nullopt;
  if (step.expect) step.expect = outcome.length;
}

struct Lane {
  explicit Lane(const std::map<std::string, ModelFacts>& models) : old(models), now(models) {}
  Traced old, now;
};

}  // namespace

std::vector<StepShape> shapes_of(const Trace& trace, const std::map<std::string, ModelFacts>& models) {
  std::map<std::size_t, Traced> lanes;
  std::vector<StepShape> shapes;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const Call& call = trace[i].call;
    Traced& lane = lanes.try_emplace(trace[i].lane, models).first->second;
    const Held before = lane.held(call);
    StepShape shape{before.columns.size(), new_columns(call), 0, false, trace[i].lane};
    shape.refused = lane.play(call, columns_of_step(call, i), up_to(rows_of_call(call))).refusal.has_value();
    if (rows_begin(call, before, lane.state(call), shape.refused)) shape.rows = rows_of_call(call);
    shapes.push_back(shape);
  }
  return shapes;
}

Trace without(const Trace& trace, const Removal& removal, const std::map<std::string, ModelFacts>& models) {
  std::map<std::size_t, Lane> lanes;
  Trace result;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    Step step = trace[i];
    Lane& lane = lanes.try_emplace(step.lane, models).first->second;
    const Held before = lane.old.held(step.call), now = lane.now.held(step.call);
    const Outcome old = lane.old.play(step.call, columns_of_step(step.call, i), up_to(rows_of_call(step.call)));
    if (removal.steps.contains(i)) continue;
    Move move{removal, i, before, old.refusal.has_value(), now, lane.now.state(step.call), {}, {}};
    std::visit([&](auto& call) { move.rewrite(call); }, step.call);
    follow_contract(step, lane.now.play(step.call, move.fresh, move.rows));
    result.push_back(std::move(step));
  }
  return result;
}

}  // namespace kvproof::harness
