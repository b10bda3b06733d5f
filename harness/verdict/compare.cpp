#include "harness/verdict/compare.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvproof::harness {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Whether a number passes. A bound that is not finite (from an infinite `want`, or noise that overflowed) lets nothing pass.
bool passes(double difference, double bound) { return difference <= bound && std::isfinite(bound); }

/// Units of the bound; anything that is not a number counts as infinitely far.
double units(double difference, double bound) {
  if (!std::isfinite(bound)) return kInfinity;
  if (difference == 0) return 0;
  const double ratio = difference / bound;
  return std::isnan(ratio) ? kInfinity : ratio;
}

/// The elements of one column of one row, found through `index`.
template <typename Index>
void compare_elements(std::size_t elements, const Index& index, std::pair<std::size_t, std::size_t> at, const RowNumbers& numbers, const Tolerance& tolerance,
                      Comparison& sum) {
  std::size_t failing = 0;
  std::optional<Place> first;
  for (std::size_t element = 0; element < elements; ++element) {
    const std::size_t i = index(element);
    const double difference = std::abs(numbers.got[i] - numbers.want[i]);
    const double bound = tolerance.bound(numbers.want[i], numbers.noise.empty() ? 0 : numbers.noise[i]);
    sum.sum_of_squares += difference * difference;
    const double ratio = units(difference, bound);
    const bool worst = ratio > sum.worst || !sum.worst_place, fails = !passes(difference, bound);
    if (!worst && !fails) continue;
    const Place place{at.first, at.second, element, numbers.got[i], numbers.want[i], bound};
    if (worst) {
      sum.worst = ratio;
      sum.worst_place = place;
    }
    if (!fails) continue;
    ++failing;
    if (!first) first = place;
  }
  ++sum.rows;
  sum.elements += elements;
  sum.failing += failing;
  if (sum.first_failing || !first) return;
  sum.first_failing = first;
  sum.failing_in_first_row = failing;
  sum.row_size = elements;
}

/// log-softmax of one row of logits.
std::vector<double> log_softmax(const double* logits, std::size_t size) {
  const double largest = *std::max_element(logits, logits + size);
  double total = 0;
  for (std::size_t v = 0; v < size; ++v) total += std::exp(logits[v] - largest);
  std::vector<double> result(size);
  for (std::size_t v = 0; v < size; ++v) result[v] = logits[v] - largest - std::log(total);
  return result;
}

double kl_divergence(const double* want, const double* got, std::size_t size) {
  const auto p = log_softmax(want, size), q = log_softmax(got, size);
  double sum = 0;
  for (std::size_t v = 0; v < size; ++v) sum += std::exp(p[v]) * (p[v] - q[v]);
  return std::isnan(sum) ? kInfinity : sum;
}

bool all_finite(const double* values, std::size_t size) { return std::all_of(values, values + size, [](double value) { return std::isfinite(value); }); }

}  // namespace

std::size_t Layout::index(std::size_t row, std::size_t column, std::size_t element) const noexcept {
  if (!heads) return (row * columns + column) * elements + element;
  const std::size_t n_head = elements / head_dim;
  return ((row * n_head + element / head_dim) * columns + column) * head_dim + element % head_dim;
}

Layout logits_layout(const Tensor& tensor) { return {tensor.shape[0], tensor.shape[1], tensor.shape[2]}; }

Layout heads_layout(const Tensor& tensor) {
  return {tensor.shape[0], tensor.shape[2], tensor.shape[1] * tensor.shape[3], true, tensor.shape[3]};
}

void Comparison::add(const Comparison& other) {
  rows += other.rows;
  elements += other.elements;
  failing += other.failing;
  if (other.worst > worst || !worst_place) {
    worst = other.worst;
    worst_place = other.worst_place;
  }
  if (!first_failing) {
    first_failing = other.first_failing;
    failing_in_first_row = other.failing_in_first_row;
    row_size = other.row_size;
  }
  sum_of_squares += other.sum_of_squares;
  worst_kl = std::max(worst_kl, other.worst_kl);
  top1_rows += other.top1_rows;
  top1_agree += other.top1_agree;
  top1_undecidable += other.top1_undecidable;
}

void compare_row(const RowNumbers& numbers, std::pair<std::size_t, std::size_t> at, const Tolerance& tolerance, Comparison& sum) {
  compare_elements(numbers.want.size(), [](std::size_t element) { return element; }, at, numbers, tolerance, sum);
}

Comparison compare(const Layout& layout, const Tensor& want, const Tensor& got, const std::vector<std::uint8_t>& compared, const Tensor* noise,
                   const Tolerance& tolerance) {
  Comparison sum;
  const RowNumbers numbers{want.values, got.values, noise != nullptr ? std::span(noise->values) : std::span<const double>()};
  for (std::size_t row = 0; row < layout.rows; ++row)
    for (std::size_t column = 0; column < layout.columns; ++column)
      if (compared[row * layout.columns + column] != 0)
        compare_elements(layout.elements, [&](std::size_t element) { return layout.index(row, column, element); }, {row, column}, numbers, tolerance, sum);
  return sum;
}

void compare_distributions(const Layout& layout, const Tensor& want, const Tensor& got, const std::vector<std::uint8_t>& compared,
                           const Tensor* noise, const Tolerance& tolerance, Comparison& comparison) {
  const std::size_t size = layout.elements;
  for (std::size_t i = 0; i < compared.size(); ++i) {
    if (compared[i] == 0) continue;
    const double *truth = &want.values[i * size], *answer = &got.values[i * size];
    comparison.worst_kl = std::max(comparison.worst_kl, kl_divergence(truth, answer, size));
    ++comparison.top1_rows;
    if (!all_finite(answer, size)) continue;  // a NaN would be its own largest
    const double* best = std::max_element(truth, truth + size);
    const auto chosen = std::max_element(answer, answer + size) - answer;
    const double row_noise = noise != nullptr ? *std::max_element(&noise->values[i * size], &noise->values[i * size] + size) : 0;
    if (best - truth == chosen) ++comparison.top1_agree;
    else if (*best - truth[chosen] <= 2 * tolerance.bound(*best, row_noise)) ++comparison.top1_undecidable;
  }
}

std::optional<Place> first_non_finite(const Layout& layout, const Tensor& tensor) {
  if (all_finite(tensor.values.data(), tensor.values.size())) return std::nullopt;
  for (std::size_t row = 0; row < layout.rows; ++row)
    for (std::size_t column = 0; column < layout.columns; ++column)
      for (std::size_t element = 0; element < layout.elements; ++element)
        if (const double value = tensor.values[layout.index(row, column, element)]; !std::isfinite(value)) return Place{row, column, element, value, 0, 0};
  return std::nullopt;
}

}  // namespace kvproof::harness
