#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/report/case_report.hpp"
#include "harness/verdict/tolerance.hpp"

namespace kvproof::harness {

/// What a run was told: it stands in every report, so that the report says how to have it again.
struct CheckRun {
  std::uint64_t seed = 0;
  std::string backend;
  std::string engine;   ///< its own name and version
  Tolerance tolerance;
  bool times = true;    ///< false leaves every time out: then the same seed gives the same bytes
  std::string started;  ///< 2026-11-29T17:06:00, for formats that want it
};

/// A way of failing that a list of known failures expects.
struct KnownClass {
  FindingClass one;
  std::size_t traces = 0;
  std::string reason;
};

/// What became of one law: all of its traces, summed up.
struct LawReport {
  std::string law;                                  ///< its id, `window.chunking`
  std::size_t traces = 0;                           ///< played and judged
  std::size_t rows = 0;                             ///< distinct (history, query) rows compared
  std::size_t checks = 0;                           ///< refusals, lengths and shapes judged
  std::optional<double> worst;                      ///< error in units of the bound; absent = no numbers; NaN and infinity are failures
  std::map<std::string, std::size_t> not_covered;   ///< why a trace was not played -> how many were not
  std::vector<CaseReport> failures;                 ///< of each way it fails that nobody expects, the first case in its smallest form
  std::size_t ways_left = 0;                        ///< such ways beyond those shown
  std::size_t failed = 0;                           ///< failing traces in all: at least failures.size()
  std::vector<KnownClass> known;                    ///< ways it fails that are expected
  std::size_t known_failed = 0;                     ///< failing traces of these, part of `failed`
  double seconds = 0;
};

/// Traces that were not played, for whatever reason.
[[nodiscard]] std::size_t not_covered_count(const LawReport& law) noexcept;

/// fail, else known_failing if any trace failed as expected; else pass if at least one trace was judged and something compared; else nothing_compared, or not_covered if none was played.
[[nodiscard]] CaseVerdict verdict_of(const LawReport& law) noexcept;

/// The part before the first point: `window` of `window.chunking`.
[[nodiscard]] std::string_view family_of(std::string_view law) noexcept;

}  // namespace kvproof::harness
