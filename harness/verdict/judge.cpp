#include "harness/verdict/judge.hpp"

#include <fmt/format.h>

#include <set>

#include "engine/base/seed.hpp"
#include "harness/verdict/judge_ids.hpp"
#include "harness/verdict/judge_numbers.hpp"

namespace kvproof::harness {
namespace {

const Tensor* pointer(const std::optional<Tensor>& tensor) { return tensor ? &*tensor : nullptr; }

/// Judges one step after the other and collects.
class Judge {
 public:
  explicit Judge(const Standards& standards) : standards_(standards) {}

  void step(std::size_t index, const Call& call, const Expectation& expected, const Observation& seen) {
    step_ = index;
    const Reply& reply = *seen.reply;
    if (seen.arrays_changed) add(FindingKind::state_changed, "the caller's arrays were written");
    if (const auto* unsupported = std::get_if<Unsupported>(&reply)) {
      result_.not_covered = fmt::format("step {}: {}", index, unsupported->reason);
      return;
    }
    ++result_.checks;
    const auto& wanted = expected.outcome.refusal;
    const std::optional<Code> code = wanted ? std::optional(wanted->code) : std::nullopt;
    if (const auto* breakdown = std::get_if<Breakdown>(&reply))
      return add(FindingKind::broke_down, fmt::format("{}: {}", breakdown->kind, breakdown->message), std::nullopt, code);
    if (const auto* refusal = std::get_if<Refusal>(&reply)) return judge_refusal(expected, *refusal);
    if (wanted) return add(FindingKind::accepts_misuse, fmt::format("accepted, expected {} ({})", code_name(wanted->code), wanted->message), std::nullopt, code);
    judge_answer(call, expected, std::get<Answer>(reply));
  }

  /// What follows a step that was not carried out has another past than the trace's.
  [[nodiscard]] bool at_its_end() const noexcept { return result_.not_covered.has_value(); }
  [[nodiscard]] Judgement result() && { return std::move(result_); }

 private:
  void add(FindingKind kind, std::string message, std::optional<Place> place = std::nullopt, std::optional<Code> code = std::nullopt) {
    result_.findings.push_back({kind, step_, place, std::move(message), code});
  }

  void judge_refusal(const Expectation& expected, const Refusal& refusal) {
    if (!expected.outcome.refusal)
      return add(FindingKind::refuses_valid, fmt::format("refused as {} ({}), expected an answer", code_name(refusal.code), refusal.message),
                 std::nullopt, refusal.code);
    const Code want = expected.outcome.refusal->code;
    if (standards_.capabilities.codes && refusal.code != want)
      add(FindingKind::wrong_code, fmt::format("refused as {} ({}), expected {} ({})", code_name(refusal.code), refusal.message, code_name(want),
                                               expected.outcome.refusal->message),
          std::nullopt, want);
  }

  void judge_answer(const Call& call, const Expectation& expected, const Answer& answer) {
    if (std::holds_alternative<Length>(call)) return judge_length(*expected.outcome.length, answer);
    if (const auto* generate = std::get_if<Generate>(&call)) return judge_generate(*generate, expected, answer);
    static const ExpectedNumbers kNothing;
    const ExpectedNumbers& want = expected.numbers ? *expected.numbers : kNothing;
    judge_numbers({step_, Part::logits, pointer(want.logits), pointer(answer.logits), pointer(want.logits_noise), want.compared}, standards_.tolerance, result_);
    if (want.logits && !want.compared.empty()) note_rows(expected.outcome, want.compared);
    judge_numbers({step_, Part::keys, pointer(want.keys), pointer(answer.keys), pointer(want.keys_noise), want.compared}, standards_.tolerance, result_);
    judge_numbers({step_, Part::values, pointer(want.values), pointer(answer.values), pointer(want.values_noise), want.compared}, standards_.tolerance, result_);
  }

  void judge_length(std::int64_t want, const Answer& answer) {
    if (!answer.length) return add(FindingKind::wrong_shape, "no length in the answer");
    if (*answer.length != want) add(FindingKind::wrong_length, fmt::format("length {}, expected {}", *answer.length, want));
  }

  void judge_generate(const Generate& call, const Expectation& expected, const Answer& answer) {
    if (!answer.ids) return add(FindingKind::wrong_shape, "no ids in the answer");
    const JudgedIds judged = judge_ids({call, expected.outcome, expected.recorded_ids}, *answer.ids, *standards_.oracles.at(expected.outcome.model), standards_.tolerance);
    if (judged.finding) add(judged.finding->kind, judged.finding->message, judged.finding->place);
    for (const std::uint64_t hash : judged.row_hashes) result_.row_hashes.push_back(hash ^ fnv1a(expected.outcome.model));
    result_.numbers.rows += answer.ids->size();
  }

  void note_rows(const Outcome& outcome, const std::vector<std::uint8_t>& compared) {
    for (std::size_t row = 0; row < outcome.rows.size(); ++row) {
      const auto hashes = outcome.rows[row].prefix_hashes();
      for (std::size_t i = 0; i < outcome.columns; ++i)
        if (compared[row * outcome.columns + i] != 0) result_.row_hashes.push_back(hashes[outcome.first + i] ^ fnv1a(outcome.model));
    }
  }

  const Standards& standards_;
  std::size_t step_ = 0;
  Judgement result_;
};

}  // namespace

std::string class_text(const FindingClass& one) {
  return one.code ? fmt::format("{} {}", finding_name(one.kind), code_name(*one.code)) : std::string(finding_name(one.kind));
}

void forget_after_parting(const Trace& trace, const std::vector<Expectation>& expected, Observations& observed) {
  std::set<std::size_t> parted;  // lanes
  for (std::size_t i = 0; i < trace.size(); ++i) {
    if (parted.contains(trace[i].lane)) observed[i] = {};
    if (!observed[i].reply) continue;
    const bool refused = std::holds_alternative<Refusal>(*observed[i].reply), answered = std::holds_alternative<Answer>(*observed[i].reply);
    const bool unable = std::holds_alternative<Unsupported>(*observed[i].reply);
    if (unable || (expected[i].outcome.refusal ? answered : refused)) parted.insert(trace[i].lane);
  }
}

Judgement judge(const Trace& trace, const std::vector<Expectation>& expected, const Observations& observed, const Standards& standards) {
  Judge judge(standards);
  for (std::size_t i = 0; i < trace.size() && !judge.at_its_end(); ++i)
    if (observed[i].reply) judge.step(i, trace[i].call, expected[i], observed[i]);
  return std::move(judge).result();
}

}  // namespace kvproof::harness
