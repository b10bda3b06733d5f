#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "harness/cli/commands.hpp"
#include "harness/cli/judging.hpp"
#include "harness/report/text.hpp"
#include "harness/trace/golden_file.hpp"

namespace kvproof::harness {
namespace {

/// A file that says it is of other weights is not compared at all; one that says nothing is taken at its word.
void require_same_origin(const GoldenFile& want, const SafetensorsFile& got) {
  const auto document = got.metadata().find("kvproof");
  if (document == got.metadata().end()) return;
  const GoldenFile other = parse_golden(got);
  if (other.weights_sha256 != want.weights_sha256)
    throw DataError({got.where(), "weights_sha256 is " + other.weights_sha256, fmt::format("{} ({})", want.weights_sha256, want.where), "Nothing was compared."});
}

struct Pair {
  std::size_t step = 0;
  const char* what = nullptr;
  const Tensor& want;
  const std::vector<std::uint8_t>& compared;
  bool heads = false;
};

Finding shape_finding(const Pair& pair, const Tensor& got) {
  return {FindingKind::wrong_shape, pair.step, std::nullopt,
          fmt::format("{} of shape [{}], expected [{}]", pair.what, fmt::join(got.shape, ", "), fmt::join(pair.want.shape, ", "))};
}

void diff_pair(const Pair& pair, const TensorView& view, const Tolerance& tolerance, Judgement& judgement) {
  const Tensor got = tensor_of(view);
  if (got.shape != pair.want.shape) return judgement.findings.push_back(shape_finding(pair, got));
  const Layout layout = pair.heads ? heads_layout(got) : logits_layout(got);
  Comparison comparison = compare(layout, pair.want, got, pair.compared, nullptr, tolerance);
  if (!pair.heads) compare_distributions(layout, pair.want, got, pair.compared, nullptr, tolerance, comparison);
  if (comparison.worst > judgement.numbers.worst || !judgement.numbers.worst_place) judgement.worst_step = pair.step;
  judgement.numbers.add(comparison);
  if (const auto& at = comparison.first_failing)
    judgement.findings.push_back({pair.heads ? FindingKind::wrong_kv : FindingKind::wrong_logits, pair.step, at,
                                  fmt::format("row {} column {}: {} {} got {:.8g}, expected {:.8g} (bound {:.2g}); {} of {} differ", at->row, at->column, pair.what,
                                              at->element, at->got, at->want, at->bound, comparison.failing_in_first_row, comparison.row_size)});
}

/// What of a step can be compared: logits always, keys and values where both have them.
std::vector<Pair> pairs_of(std::size_t step, const Recorded& recorded) {
  std::vector<Pair> pairs;
  if (recorded.logits) pairs.push_back({step, "logits", *recorded.logits, recorded.compared, false});
  if (recorded.keys) pairs.push_back({step, "keys", *recorded.keys, recorded.compared, true});
  if (recorded.values) pairs.push_back({step, "values", *recorded.values, recorded.compared, true});
  return pairs;
}

}  // namespace

ExitCode run_golden_diff(const Arguments& arguments) {
  OptionTable table("options");
  add_tolerance_options(table);
  const auto values = parse_options({"golden diff", "file", "WANT GOT"}, table, arguments);
  if (!values) return kExpected;
  const auto files = values->count("file") != 0 ? (*values)["file"].as<std::vector<std::string>>() : std::vector<std::string>{};
  if (files.size() != 2) throw UsageError({"kvproof golden diff", fmt::format("{} files are named", files.size()), "two: WANT GOT", ""});
  const GoldenFile want = read_golden(files[0]);
  const SafetensorsFile got = SafetensorsFile::open(files[1]);
  require_same_origin(want, got);

  CaseReport report{.name = files[1], .backend = "diff"};
  report.tolerance = tolerance_from(*values, {want.atol, want.rtol, false, "file"});
  if (report.tolerance.derived) throw UsageError({"kvproof golden diff", "--tolerance derived", "--atol and --rtol: two files have no oracle", ""});
  std::vector<std::string> missing;
  for (const auto& [step, recorded] : want.recorded)
    for (const Pair& pair : pairs_of(step, recorded)) {
      const TensorView* view = got.find(tensor_name(step, pair.what));
      if (view != nullptr) diff_pair(pair, *view, report.tolerance, report.judgement);
      else if (!pair.heads) missing.push_back(tensor_name(step, pair.what));
    }
  report.replay = fmt::format("kvproof golden diff {} {}{}", quoted(files[0]), quoted(files[1]), tolerance_arguments(*values));
  report.verdict = verdict_of(report.judgement);
  std::cout << case_text(report);
  if (!missing.empty()) std::cout << fmt::format("could not compare: {} has no {}\n", files[1], fmt::join(missing, ", "));
  if (report.verdict == CaseVerdict::fail) return kViolations;
  return missing.empty() && report.verdict == CaseVerdict::pass ? kExpected : kNoVerdict;
}

}  // namespace kvproof::harness
