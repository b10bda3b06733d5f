#pragma once
#include <optional>
#include <string>
#include <vector>

#include "harness/cli/check_failures.hpp"
#include "harness/cli/check_run.hpp"
#include "harness/cli/exit_code.hpp"
#include "harness/report/known_list.hpp"
#include "harness/report/law_report.hpp"
#include "harness/verdict/known_failing.hpp"

namespace kvproof::harness {

/// How the report of a check is written.
struct CheckReportOptions {
  ShowOptions show;
  std::string engine;                  ///< the backend's own name and version
  std::optional<KnownFailing> known;   ///< what is expected to fail
  std::optional<ListReport> list;      ///< what became of it
  bool written = false;                ///< this run writes it anew
};

/// Sums the cases up law by law. Of each way a law fails that is not expected the first case is shrunk, written as a trace file, and shown.
[[nodiscard]] std::vector<LawReport> law_reports(const CheckRequest& request, const CheckModels& models, const CheckedRun& run, const CheckReportOptions& options);

/// What a list of known failures is held against.
[[nodiscard]] std::vector<LawOutcome> law_outcomes(const CheckRequest& request, const CheckedRun& run);

/// Distinct (history, query) rows over all laws.
[[nodiscard]] std::size_t distinct_rows(const CheckedRun& run);

/// How often each situation occurred, law by law, and which never did.
[[nodiscard]] std::string coverage_text(const CheckRequest& request, const CheckedRun& run);

/// Laws that cannot pass or fail leave no verdict.
[[nodiscard]] ExitCode code_of(const std::vector<LawReport>& laws);

/// The table, the failures, the verdict; the last line of a failed run replays its first failure.
[[nodiscard]] std::string check_text(const CheckRequest& request, const std::vector<LawReport>& laws, std::size_t rows, const CheckReportOptions& options);

}  // namespace kvproof::harness
