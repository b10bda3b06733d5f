#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <iostream>

#include "harness/cli/commands.hpp"
#include "harness/cli/judging.hpp"
#include "harness/cli/program.hpp"
#include "harness/report/text.hpp"
#include "harness/trace/golden_file.hpp"
#include "harness/verdict/judge_numbers.hpp"

namespace kvproof::harness {
namespace {

bool same_call(const Step& a, const Step& b) { return a.call == b.call && a.lane == b.lane; }

/// A file that says it is of other weights or another trace is not compared at all; one that says nothing is taken at its word.
void require_same_origin(const GoldenFile& want, const SafetensorsFile& got) {
  if (!got.metadata().contains("kvproof")) return;
  const GoldenFile other = parse_golden(got);
  if (other.weights_sha256 != want.weights_sha256)
    throw DataError({got.where(), "weights_sha256 is " + other.weights_sha256, fmt::format("{} ({})", want.weights_sha256, want.where), "Nothing was compared."});
  const auto [a, b] = std::ranges::mismatch(want.trace, other.trace, same_call);
  if (a != want.trace.end() || b != other.trace.end())
    throw DataError({got.where(), fmt::format("another trace from step {} on", a - want.trace.begin()), "that of " + want.where, "Nothing was compared."});
}

/// Two files side by side, and what came of it.
class Diff {
 public:
  Diff(const SafetensorsFile& got, const Tolerance& tolerance) : got_(got), tolerance_(tolerance) {}

  void step(std::size_t step, const Recorded& want) {
    if (want.logits) numbers({step, Part::logits, &*want.logits, nullptr, nullptr, want.compared}, "logits", missing_);
    if (want.keys) numbers({step, Part::keys, &*want.keys, nullptr, nullptr, want.compared}, "keys", left_out_);
    if (want.values) numbers({step, Part::values, &*want.values, nullptr, nullptr, want.compared}, "values", left_out_);
    if (want.ids) ids(step, *want.ids);
  }

  [[nodiscard]] const Judgement& judgement() const noexcept { return judgement_; }
  /// Logits must be there; keys, values and ids are compared where they are.
  [[nodiscard]] const std::vector<std::string>& missing() const noexcept { return missing_; }
  [[nodiscard]] const std::vector<std::string>& left_out() const noexcept { return left_out_; }

 private:
  void numbers(NumbersOfStep step, const char* what, std::vector<std::string>& absent) {
    const TensorView* view = got_.find(tensor_name(step.step, what));
    if (view == nullptr) return absent.push_back(tensor_name(step.step, what));
    const Tensor tensor = tensor_of(*view);
    step.got = &tensor;
    judge_numbers(step, tolerance_, judgement_);
  }

  void ids(std::size_t step, const Rows& want) {
    const TensorView* view = got_.find(tensor_name(step, "ids"));
    if (view == nullptr) return left_out_.push_back(tensor_name(step, "ids"));
    if (view->dtype != Dtype::i64) throw DataError({got_.where(), fmt::format("tensor {} is {}", view->name, dtype_name(view->dtype)), "I64", ""});
    const std::vector<std::size_t> shape{want.size(), want.empty() ? 0 : want.front().size()};
    if (view->shape != shape)
      return judgement_.findings.push_back({FindingKind::wrong_shape, step, std::nullopt,
                                            fmt::format("ids: shape [{}], expected [{}]", fmt::join(view->shape, ", "), fmt::join(shape, ", "))});
    std::vector<std::int64_t> flat(view->bytes.size() / sizeof(std::int64_t));
    if (!flat.empty()) std::memcpy(flat.data(), view->bytes.data(), view->bytes.size());
    judgement_.numbers.rows += want.size();
    for (std::size_t i = 0; i < flat.size(); ++i)
      if (const std::int64_t expected = want[i / shape[1]][i % shape[1]]; flat[i] != expected)
        return judgement_.findings.push_back({FindingKind::wrong_ids, step, std::nullopt,
                                              fmt::format("row {} new token {}: id {}, expected {}", i / shape[1], i % shape[1], flat[i], expected)});
  }

  const SafetensorsFile& got_;
  const Tolerance& tolerance_;
  Judgement judgement_;
  std::vector<std::string> missing_, left_out_;
};

void print_absent(const char* words, const std::string& file, const std::vector<std::string>& names) {
  if (!names.empty()) std::cout << fmt::format("{}: {} has no {}\n", words, file, fmt::join(names, ", "));
}

}  // namespace

ExitCode run_golden_diff(const Arguments& arguments) {
  OptionTable table("options");
  add_tolerance_options(table);
  const auto values = parse_options({"golden diff", "file", "WANT GOT"}, table, arguments);
  if (!values) return kExpected;
  const auto files = values->count("file") != 0 ? (*values)["file"].as<std::vector<std::string>>() : std::vector<std::string>{};
  if (files.size() != 2) throw UsageError({"kvproof golden diff", fmt::format("{} files are named", files.size()), "two: WANT GOT", "Try kvproof golden diff --help"});
  if (tolerance_from(*values, {}).derived) throw UsageError({"kvproof golden diff", "--tolerance derived", "--atol and --rtol: two files have no oracle", ""});
  const GoldenFile want = read_golden(files[0]);
  const SafetensorsFile got = SafetensorsFile::open(files[1]);
  require_same_origin(want, got);

  CaseReport report{.name = files[1], .backend = "diff", .tolerance = tolerance_from(*values, {want.atol, want.rtol, false, "file"})};
  Diff diff(got, report.tolerance);
  for (const auto& [step, recorded] : want.recorded) diff.step(step, recorded);
  report.judgement = diff.judgement();
  report.replay = fmt::format("{} golden diff {} {}{}", program(), quoted(files[0]), quoted(files[1]), tolerance_arguments(*values));
  report.verdict = verdict_of(report.judgement);
  print_absent("could not compare", files[1], diff.missing());
  print_absent("left out", files[1], diff.left_out());
  std::cout << case_text(report);
  const ExitCode code = code_of(report.verdict);
  return diff.missing().empty() ? code : worse(code, kNoVerdict);
}

}  // namespace kvproof::harness
