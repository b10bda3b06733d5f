#include "harness/verdict/judge_numbers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <functional>
#include <numeric>

namespace kvproof::harness {
namespace {

/// How messages name one number of a part, and what is found if it is wrong.
struct Words {
  const char* one;
  FindingKind kind;
};
constexpr std::array<Words, 3> kWords = {{{"logit", FindingKind::wrong_logits}, {"key", FindingKind::wrong_kv}, {"value", FindingKind::wrong_kv}}};

const Words& words(Part part) { return kWords[static_cast<std::size_t>(part)]; }

/// A shape in words. A backend's tensor may also lie about how many numbers it holds.
std::string shape_text(const Tensor* tensor) {
  if (tensor == nullptr) return "none";
  return fmt::format("shape [{}] with {} numbers", fmt::join(tensor->shape, ", "), tensor->values.size());
}

bool same_shape(const Tensor* want, const Tensor* got) {
  if (want == nullptr || got == nullptr) return want == got;
  const std::size_t size = std::accumulate(want->shape.begin(), want->shape.end(), std::size_t{1}, std::multiplies{});
  return want->shape == got->shape && got->values.size() == size;
}

Finding non_finite(const NumbersOfStep& numbers, const Place& at) {
  return {FindingKind::non_finite, numbers.step, at,
          fmt::format("row {} column {}: {} {} is {}", at.row, at.column, words(numbers.part).one, at.element, at.got)};
}

Finding too_far(const NumbersOfStep& numbers, const Comparison& comparison) {
  const Place& at = *comparison.first_failing;
  return {words(numbers.part).kind, numbers.step, at,
          fmt::format("row {} column {}: {} {} got {:.8g}, expected {:.8g} (bound {:.2g}); {} of {} differ", at.row, at.column, words(numbers.part).one,
                      at.element, at.got, at.want, at.bound, comparison.failing_in_first_row, comparison.row_size)};
}

}  // namespace

void judge_numbers(const NumbersOfStep& numbers, const Tolerance& tolerance, Judgement& judgement) {
  if (!same_shape(numbers.want, numbers.got))
    return judgement.findings.push_back({FindingKind::wrong_shape, numbers.step, std::nullopt,
                                         fmt::format("{}s: {}, expected {}", words(numbers.part).one, shape_text(numbers.got), shape_text(numbers.want))});
  if (numbers.want == nullptr) return;
  const Tensor &want = *numbers.want, &got = *numbers.got;
  const bool logits = numbers.part == Part::logits;
  const Layout layout = logits ? logits_layout(want) : heads_layout(want);
  if (logits)
    if (const auto place = first_non_finite(layout, got)) judgement.findings.push_back(non_finite(numbers, *place));
  if (want.values.empty()) return;  // the shape alone was asked for
  Comparison comparison = compare(layout, want, got, numbers.compared, numbers.noise, tolerance);
  if (logits) compare_distributions(layout, want, got, numbers.compared, numbers.noise, tolerance, comparison);
  if (comparison.worst > judgement.numbers.worst || !judgement.numbers.worst_place) judgement.worst_step = numbers.step;
  judgement.numbers.add(comparison);
  if (comparison.first_failing) judgement.findings.push_back(too_far(numbers, comparison));
}

}  // namespace kvproof::harness
