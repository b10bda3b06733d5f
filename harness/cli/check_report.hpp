#pragma once
#include <string>
#include <vector>

#include "harness/cli/check_run.hpp"
#include "harness/cli/exit_code.hpp"
#include "harness/report/law_report.hpp"

namespace kvproof::harness {

/// How the report of a check is written.
struct CheckReportOptions {
  std::string backend;            ///< as it was named
  std::string replay_arguments;   ///< backend, limits and tolerance, as a replay needs them
  std::filesystem::path failures; ///< where failing traces are written
  bool coverage = false;
};

/// Sums the cases up law by law. The first failing case of each law is shrunk, written as a trace file, and shown.
[[nodiscard]] std::vector<LawReport> law_reports(const CheckRequest& request, const CheckModels& models, const std::vector<CheckedCase>& cases,
                                                 const CheckReportOptions& options);

/// Distinct (history, query) rows over all laws.
[[nodiscard]] std::size_t distinct_rows(const std::vector<CheckedCase>& cases);

/// How often each situation occurred, law by law, and which never did.
[[nodiscard]] std::string coverage_text(const CheckRequest& request, const std::vector<CheckedCase>& cases);

/// Laws that cannot pass or fail leave no verdict.
[[nodiscard]] ExitCode code_of(const std::vector<LawReport>& laws);

/// The table, the failures, the verdict; the last line of a failed run replays its first failure.
[[nodiscard]] std::string check_text(const CheckRequest& request, const std::vector<LawReport>& laws, std::size_t rows, const CheckReportOptions& options);

}  // namespace kvproof::harness
