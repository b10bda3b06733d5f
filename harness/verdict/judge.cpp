#include "harness/verdict/judge.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "harness/verdict/judge_ids.hpp"

namespace kvproof::harness {
namespace {

constexpr std::array<std::string_view, 12> kNames = {"wrong_logits",   "wrong_kv",      "wrong_ids",  "non_finite",    "wrong_shape",    "wrong_length",
                                                     "accepts_misuse", "refuses_valid", "wrong_code", "state_changed", "not_repeatable", "broke_down"};

/// One kind of numbers in an answer.
struct Part {
  const char* what;  // as messages name one number
  FindingKind kind;
  Layout (*layout)(const Tensor&);
};
constexpr Part kLogits{"logit", FindingKind::wrong_logits, logits_layout};
constexpr Part kKeys{"key", FindingKind::wrong_kv, heads_layout};
constexpr Part kValues{"value", FindingKind::wrong_kv, heads_layout};

/// Judges one step after the other and collects.
class Judge {
 public:
  Judge(const Capabilities& capabilities, const Tolerance& tolerance, const Oracles& oracles)
      : capabilities_(capabilities), tolerance_(tolerance), oracles_(oracles) {}

  void step(std::size_t index, const Call& call, const Expectation& expected, const Reply& reply) {
    step_ = index;
    if (const auto* unsupported = std::get_if<Unsupported>(&reply)) {
      result_.not_covered = fmt::format("step {}: {}", index, unsupported->reason);
      return;
    }
    ++result_.checks;
    if (const auto* breakdown = std::get_if<Breakdown>(&reply)) return add(FindingKind::broke_down, fmt::format("{}: {}", breakdown->kind, breakdown->message));
    if (const auto* refusal = std::get_if<Refusal>(&reply)) return judge_refusal(expected, *refusal);
    if (expected.outcome.refusal)
      return add(FindingKind::accepts_misuse, fmt::format("accepted, expected {} ({})", code_name(expected.outcome.refusal->code), expected.outcome.refusal->message));
    judge_answer(call, expected, std::get<Answer>(reply));
  }

  [[nodiscard]] Judgement result() && { return std::move(result_); }

 private:
  void add(FindingKind kind, std::string message, std::optional<Place> place = std::nullopt) {
    result_.findings.push_back({kind, step_, place, std::move(message)});
  }

  void judge_refusal(const Expectation& expected, const Refusal& refusal) {
    if (!expected.outcome.refusal)
      return add(FindingKind::refuses_valid, fmt::format("refused as {} ({}), expected an answer", code_name(refusal.code), refusal.message));
    const Code want = expected.outcome.refusal->code;
    const bool told = capabilities_.codes || refusal.code != Code::other;
    if (told && refusal.code != want)
      add(FindingKind::wrong_code, fmt::format("refused as {} ({}), expected {} ({})", code_name(refusal.code), refusal.message, code_name(want),
                                               expected.outcome.refusal->message));
  }

  void judge_answer(const Call& call, const Expectation& expected, const Answer& answer) {
    if (std::holds_alternative<Length>(call)) return judge_length(*expected.outcome.length, answer);
    if (const auto* generate = std::get_if<Generate>(&call)) return judge_generate(*generate, expected.outcome, answer);
    static const ExpectedNumbers kNothing;
    const ExpectedNumbers& numbers = expected.numbers ? *expected.numbers : kNothing;
    judge_numbers(kLogits, numbers.logits, answer.logits, numbers.logits_noise, numbers.compared);
    judge_numbers(kKeys, numbers.keys, answer.keys, numbers.keys_noise, numbers.compared);
    judge_numbers(kValues, numbers.values, answer.values, numbers.values_noise, numbers.compared);
  }

  void judge_length(std::int64_t want, const Answer& answer) {
    if (!answer.length) return add(FindingKind::wrong_shape, "no length in the answer");
    if (*answer.length != want) add(FindingKind::wrong_length, fmt::format("length {}, expected {}", *answer.length, want));
  }

  void judge_generate(const Generate& call, const Outcome& outcome, const Answer& answer) {
    if (!answer.ids) return add(FindingKind::wrong_shape, "no ids in the answer");
    auto finding = judge_ids(call, outcome, *answer.ids, *oracles_.at(outcome.model), tolerance_);
    if (finding) add(finding->kind, finding->message, finding->place);
    result_.numbers.rows += answer.ids->size();
  }

  void judge_numbers(const Part& part, const std::optional<Tensor>& want, const std::optional<Tensor>& got, const std::optional<Tensor>& noise,
                     const std::vector<std::uint8_t>& compared) {
    const std::vector<std::size_t> nothing;
    const auto& found = got ? got->shape : nothing;
    const auto& shape = want ? want->shape : nothing;
    if (found != shape)
      return add(FindingKind::wrong_shape, fmt::format("{}s of shape [{}], expected [{}]", part.what, fmt::join(found, ", "), fmt::join(shape, ", ")));
    if (!want) return;
    const Layout layout = part.layout(*want);
    if (const auto place = first_non_finite(layout, *got); place && part.kind == FindingKind::wrong_logits)
      add(FindingKind::non_finite, fmt::format("row {} column {}: {} {} is {}", place->row, place->column, part.what, place->element, place->got), place);
    take(part, compare(layout, *want, *got, compared, noise ? &*noise : nullptr, tolerance_), layout, *want, *got, noise, compared);
  }

  void take(const Part& part, Comparison comparison, const Layout& layout, const Tensor& want, const Tensor& got, const std::optional<Tensor>& noise,
            const std::vector<std::uint8_t>& compared) {
    if (part.kind == FindingKind::wrong_logits) compare_distributions(layout, want, got, compared, noise ? &*noise : nullptr, tolerance_, comparison);
    if (comparison.worst > result_.numbers.worst || !result_.numbers.worst_place) result_.worst_step = step_;
    result_.numbers.add(comparison);
    if (!comparison.first_failing) return;
    const Place& at = *comparison.first_failing;
    add(part.kind, fmt::format("row {} column {}: {} {} got {:.8g}, expected {:.8g} (bound {:.2g}); {} of {} differ", at.row, at.column, part.what, at.element,
                               at.got, at.want, at.bound, comparison.failing_in_first_row, comparison.row_size), at);
  }

  const Capabilities& capabilities_;
  const Tolerance& tolerance_;
  const Oracles& oracles_;
  std::size_t step_ = 0;
  Judgement result_;
};

}  // namespace

std::string_view finding_name(FindingKind kind) noexcept { return kNames[static_cast<std::size_t>(kind)]; }

Judgement judge(const Trace& trace, const std::vector<Expectation>& expected, const Observations& observed, const Capabilities& capabilities,
                const Tolerance& tolerance, const Oracles& oracles) {
  Judge judge(capabilities, tolerance, oracles);
  for (std::size_t i = 0; i < trace.size(); ++i)
    if (observed[i]) judge.step(i, trace[i].call, expected[i], *observed[i]);
  return std::move(judge).result();
}

}  // namespace kvproof::harness
