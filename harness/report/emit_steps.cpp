#include "harness/report/emit_steps.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "engine/base/error.hpp"
#include "harness/report/python_text.hpp"
#include "harness/report/transformers_prelude.hpp"
#include "harness/trace/step_json.hpp"
#include "harness/verdict/consistency.hpp"

namespace kvproof::harness {
namespace {

/// A live cache and how the script calls it.
struct LiveCache {
  std::string kind, model;
};

/// What each query of a row sees: one row of bits if hidden columns are hidden from all, else a string of bits for each query.
std::string row_mask(const RowHistory& row) {
  std::vector<std::int64_t> bits(row.columns.size());
  std::vector<std::string> queries;
  bool same_for_all = true;
  for (std::size_t q = 0; q < bits.size(); ++q) {
    bits[q] = row.visible(q, q) ? 1 : 0;
    queries.emplace_back();
    for (std::size_t c = 0; c <= q; ++c) {
      same_for_all = same_for_all && row.visible(q, c) == (bits[c] != 0);
      queries.back() += row.visible(q, c) ? '1' : '0';
    }
  }
  return same_for_all ? python_list(bits) : fmt::format("[\"{}\"]", fmt::join(queries, "\", \""));
}

std::string join_rows(const std::vector<RowHistory>& rows, const auto& text_of) {
  std::vector<std::string> texts;
  texts.reserve(rows.size());
  for (const RowHistory& row : rows) texts.push_back(text_of(row));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

std::string column_list(const RowHistory& row, std::int64_t Column::* field) {
  std::vector<std::int64_t> numbers;
  numbers.reserve(row.columns.size());
  for (const Column& column : row.columns) numbers.push_back(column.*field);
  return python_list(numbers);
}

class Emitter {
 public:
  Emitter(const EmitRequest& request, const std::vector<Outcome>& outcomes) : request_(request), outcomes_(outcomes), finding_(*request.file.run.finding) {}

  EmittedSteps run() {
    const Trace& trace = request_.file.trace;
    const std::size_t end = end_of_the_matter();
    for (step_ = 0; step_ < end; ++step_) {
      comment();
      if (outcomes_[step_].refusal) refused(trace[step_].call);
      else std::visit([this](const auto& call) { legal(call); }, trace[step_].call);
    }
    return std::move(steps_);
  }

 private:
  // ---- which steps matter, and what is checked

  /// Whether this refused call is what the finding is about.
  [[nodiscard]] bool subject(std::size_t step) const {
    const auto& code = request_.file.run.code;
    return outcomes_[step].refusal && (!code || outcomes_[step].refusal->code == *code);
  }

  /// Behind the misuse that is accepted there is nothing to show.
  [[nodiscard]] std::size_t end_of_the_matter() const {
    const std::size_t count = outcomes_.size();
    const bool misuse = finding_ == FindingKind::accepts_misuse || (finding_ == FindingKind::broke_down && request_.file.run.code);
    if (!misuse) return count;
    std::size_t end = 0;
    for (std::size_t i = 0; i < count; ++i) end = subject(i) ? i + 1 : end;
    if (end == 0) throw Error({request_.name, "no call of the trace is the misuse that its finding speaks of", "", ""});
    return end;
  }

  [[nodiscard]] bool shows(FindingKind kind) const {
    if (finding_ == kind) return true;
    return finding_ == FindingKind::state_changed && request_.file.run.code && changed_ && kind != FindingKind::not_repeatable;  // it may show later, too
  }

  // ---- text

  void line(std::string text) { steps_.lines.push_back(std::move(text)); }

  void need(std::string_view part) {
    if (std::ranges::find(steps_.prelude, part) == steps_.prelude.end()) steps_.prelude.push_back(part);
  }

  void comment() {
    const Step& step = request_.file.trace[step_];
    line("");
    line(fmt::format("# step {}: {}", step_, python_words(cut_words(step_to_json(step).dump()))));
    if (const auto& refusal = outcomes_[step_].refusal) line(fmt::format("# A misuse: {} ({}).", code_name(refusal->code), python_words(refusal->message)));
  }

  static std::string cut_words(std::string text) {
    constexpr std::size_t kLongest = 400;
    if (text.size() > kLongest) text = text.substr(0, kLongest) + " ...";
    return text;
  }

  static std::string cache_name(const std::string& name) { return python_name("cache_", name); }
  static std::string model_name(const std::string& name) { return python_name("model_", name); }

  std::string exact_name() {
    steps_.recomputes = true;
    return python_name("exact_", outcomes_[step_].model);
  }

  [[noreturn]] void cannot(const std::string& why) const { throw Error({fmt::format("{}: step {}", request_.name, step_), why, "", ""}); }

  // ---- calls as expressions

  std::string new_cache(const std::string& kind, const std::optional<std::int64_t>& capacity, const std::string& model) {
    if (kind == "dynamic") return fmt::format("DynamicCache(config={}.config)", model_name(model));
    if (kind == "static") return fmt::format("StaticCache(config={}.config, max_cache_len={})", model_name(model), capacity.value_or(0));
    cannot(fmt::format("a {} cache: GPT-2 of Transformers has no window to mask by", kind));
  }

  [[nodiscard]] std::string forward(const Forward& call) const {
    const std::string model = model_name(call.model ? *call.model : call.cache ? live_.at(*call.cache).model : "main");
    std::string arguments = fmt::format("input_ids=ids({})", python_rows(call.input_ids));
    if (call.attention_mask) arguments += fmt::format(", attention_mask=ids({})", python_rows(*call.attention_mask));
    if (call.position_ids) arguments += fmt::format(", position_ids=ids({})", python_rows(*call.position_ids));
    if (call.cache) arguments += fmt::format(", past_key_values={}", cache_name(*call.cache));
    arguments += fmt::format(", use_cache={}", call.cache && call.use_cache ? "True" : "False");
    if (call.logits == "none") return fmt::format("{}.transformer({})", model, arguments);
    return fmt::format("{}({}{}).logits", model, arguments, call.logits == "last" ? ", logits_to_keep=1" : "");
  }

  std::string generate(const Generate& call) {
    const std::string model = call.model.value_or("main");
    std::string arguments = fmt::format("{}, do_sample=False, max_new_tokens={}", "ids(" + python_rows(call.input_ids) + ")", call.max_new_tokens);
    arguments += fmt::format(", eos_token_id={}", call.eos_token_id ? fmt::format("{}", *call.eos_token_id) : "None");
    if (call.attention_mask) arguments += fmt::format(", attention_mask=ids({})", python_rows(*call.attention_mask));
    arguments += fmt::format(", use_cache={}", call.kind ? "True" : "False");
    if (call.kind && *call.kind != "dynamic") arguments += ", past_key_values=" + new_cache(*call.kind, call.capacity, model);
    return fmt::format("{}.generate({})", model_name(model), arguments);
  }

  std::string crop(const Crop& call) {
    need(kPythonCrop);
    return fmt::format("crop({}, {})", cache_name(call.cache), call.length);
  }

  std::string gather(const Gather& call) {
    need(kPythonGather);
    return fmt::format("gather({}, {})", cache_name(call.cache), python_list(call.rows));
  }

  // ---- misuse

  void refused(const Call& call) {
    if (concerns_trace_words(outcomes_[step_].refusal->code)) return line("# It is about the words of a trace, and left out here.");
    need(kPythonMisuse);
    const bool of_state = finding_ == FindingKind::state_changed && request_.file.run.code && subject(step_);
    if (of_state) need(kPythonState);
    if (of_state) line(fmt::format("before = state_of({})", live_arguments()));
    const bool told = subject(step_) && (finding_ == FindingKind::accepts_misuse || finding_ == FindingKind::broke_down);
    line(fmt::format("with must_refuse({}{}):", step_, told ? fmt::format(", \"{}\"", finding_name(finding_)) : ""));
    line("    " + std::visit([this](const auto& one) { return misuse(one); }, call));
    if (of_state) line(fmt::format("must_be_unchanged({}, before, state_of({}))", step_, live_arguments()));
    changed_ = changed_ || of_state;
  }

  [[nodiscard]] std::string live_arguments() const {
    std::vector<std::string> arguments;
    arguments.reserve(live_.size());
    for (const auto& [name, cache] : live_) arguments.push_back(fmt::format("{}={}", cache_name(name), cache_name(name)));
    return fmt::format("{}", fmt::join(arguments, ", "));
  }

  std::string misuse(const Forward& call) { return forward(call); }
  std::string misuse(const Crop& call) { return crop(call); }
  std::string misuse(const Gather& call) { return gather(call); }
  std::string misuse(const Generate& call) { return generate(call); }
  std::string misuse(const Read& call) {
    if (call.layer < 0) cannot("cache.layers is a list of Python, which counts a negative layer from its end");
    return fmt::format("{}.layers[{}].keys", cache_name(call.cache), call.layer);
  }
  std::string misuse(const auto&) { cannot("a misuse that plain calls have no words for"); }

  // ---- legal calls

  void legal(const NewCache& call) {
    const std::string model = call.model.value_or("main");
    line(fmt::format("{} = {}", cache_name(call.cache), new_cache(call.kind, call.capacity, model)));
    live_[call.cache] = {call.kind, model};
  }

  void legal(const Clone& call) {
    line(fmt::format("{} = copy.deepcopy({})", cache_name(call.cache), cache_name(call.from)));
    live_[call.cache] = live_.at(call.from);
  }

  void legal(const Crop& call) { line(crop(call)); }
  void legal(const Gather& call) { line(gather(call)); }
  void legal(const Reset& call) { line(cache_name(call.cache) + ".reset()"); }

  void legal(const Drop& call) {
    line("del " + cache_name(call.cache));
    live_.erase(call.cache);
  }

  void legal(const Save& call) {
    need(kPythonStore);
    line(fmt::format("{} = store({})", python_name("stored_", call.to), cache_name(call.cache)));
    saved_[call.to] = live_.at(call.cache);
  }

  void legal(const Load& call) {
    need(kPythonStore);
    line(fmt::format("{} = restore({})", cache_name(call.cache), python_name("stored_", call.from)));
    live_[call.cache] = saved_.at(call.from);
  }

  void legal(const Length& call) {
    if (!shows(FindingKind::wrong_length)) return line(cache_name(call.cache) + ".get_seq_length()");
    need(kPythonLength);
    line(fmt::format("must_be_length({}, {}, {})", step_, cache_name(call.cache), outcomes_[step_].length.value_or(0)));
  }

  void legal(const Forward& call) {
    const std::string answer = fmt::format("logits_{}", step_);
    if (call.logits == "none") return line(forward(call));
    line(fmt::format("{} = {}", answer, forward(call)));
    if (shows(FindingKind::wrong_logits) || shows(FindingKind::non_finite) || shows(FindingKind::wrong_shape)) compare_logits(answer);
    if (shows(FindingKind::not_repeatable)) compare_bits(answer);
  }

  void legal(const Read& call) {
    need(kPythonRead);
    const Outcome& outcome = outcomes_[step_];
    const std::string answer = fmt::format("read_{}", step_);
    if (outcome.rows.empty()) return line("# The cache is empty: nothing is read here.");
    line(fmt::format("{} = read({}, {})", answer, cache_name(call.cache), call.layer));
    if (shows(FindingKind::wrong_kv)) {
      need(kPythonRecompute);
      need(kPythonCompareRead);
      line(fmt::format("_, exact_cache = {}", recompute()));
      line(fmt::format("compare_read({}, {}, exact_cache, {}, {})", step_, answer, call.layer, python_rows(present())));
    }
    if (finding_ == FindingKind::state_changed && !request_.file.run.code) compare_columns(answer, call);
  }

  void legal(const Generate& call) {
    const std::string answer = fmt::format("ids_{}", step_);
    line(fmt::format("{} = {}[:, {}:]", answer, generate(call), call.input_ids.front().size()));
    if (!shows(FindingKind::wrong_ids)) return;
    need(kPythonRecompute);
    need(kPythonGreedy);
    Rows mask = call.attention_mask.value_or(Rows(call.input_ids.size(), std::vector<std::int64_t>(call.input_ids.front().size(), 1)));
    line(fmt::format("must_be_greedy({}, {}, {}, {}, {}, {})", step_, answer, exact_name(), python_rows(call.input_ids), python_rows(mask),
                     call.eos_token_id ? fmt::format("{}", *call.eos_token_id) : "None"));
  }

  // ---- checks

  /// The whole history of each row, once more and at once.
  std::string recompute() {
    need(kPythonRecompute);
    const auto& rows = outcomes_[step_].rows;
    return fmt::format("recompute({}, {}, {}, {})", exact_name(), join_rows(rows, [](const RowHistory& row) { return column_list(row, &Column::token); }),
                       join_rows(rows, [](const RowHistory& row) { return column_list(row, &Column::position); }), join_rows(rows, row_mask));
  }

  void compare_logits(const std::string& answer) {
    const Outcome& outcome = outcomes_[step_];
    Rows counts;
    for (const RowHistory& row : outcome.rows) {
      counts.emplace_back();
      for (std::size_t i = 0; i < outcome.columns; ++i) counts.back().push_back(row.hidden(outcome.first + i) ? 0 : 1);
    }
    line(fmt::format("want, _ = {}", recompute()));
    line(fmt::format("compare({}, {}, want[:, {}:{}], {})", step_, answer, outcome.first, outcome.first + outcome.columns, python_rows(counts)));
  }

  void compare_bits(const std::string& answer) {
    const std::uint64_t state = state_of_call(request_.file.trace[step_], outcomes_[step_]);
    const auto [first, fresh] = calls_.try_emplace(state, step_);
    if (fresh) return;
    need(kPythonBits);
    line(fmt::format("must_be_same_bits({}, {}, {}, logits_{})", step_, answer, first->second, first->second));
  }

  /// Which columns of a read count: the mask bits as they are now.
  [[nodiscard]] Rows present() const {
    const Outcome& outcome = outcomes_[step_];
    Rows counts;
    for (const auto& row : outcome.present) {
      counts.emplace_back();
      for (std::size_t i = 0; i < outcome.columns; ++i) counts.back().push_back(row[outcome.first + i]);
    }
    return counts;
  }

  /// Columns that an earlier read of the layer has shown already, wherever they were then.
  void compare_columns(const std::string& answer, const Read& call) {
    const Outcome& outcome = outcomes_[step_];
    const Rows counts = present();
    std::map<std::size_t, std::vector<std::string>> pairs;  // by earlier step
    for (std::size_t row = 0; row < outcome.rows.size(); ++row)
      for (std::size_t i = 0; i < outcome.columns; ++i) {
        if (counts[row][i] == 0) continue;
        const auto [first, fresh] = columns_.try_emplace({call.layer, outcome.rows[row].columns[outcome.first + i].origin}, std::tuple(step_, row, i));
        const auto& [step, old_row, old_column] = first->second;
        if (!fresh) pairs[step].push_back(fmt::format("(({}, {}), ({}, {}))", row, i, old_row, old_column));
      }
    if (!pairs.empty()) need(kPythonSameColumns);
    for (const auto& [step, list] : pairs)
      line(fmt::format("must_be_same_columns({}, {}, {}, read_{}, [{}])", step_, answer, step, step, fmt::join(list, ", ")));
  }

  const EmitRequest& request_;
  const std::vector<Outcome>& outcomes_;
  FindingKind finding_;
  EmittedSteps steps_;
  std::size_t step_ = 0;
  bool changed_ = false;  ///< the refused call that is said to change something is behind us
  std::map<std::string, LiveCache> live_, saved_;
  std::map<std::uint64_t, std::size_t> calls_;
  std::map<std::pair<std::int64_t, std::uint64_t>, std::tuple<std::size_t, std::size_t, std::size_t>> columns_;
};

}  // namespace

EmittedSteps emit_steps(const EmitRequest& request, const std::vector<Outcome>& outcomes) { return Emitter(request, outcomes).run(); }

}  // namespace kvproof::harness
