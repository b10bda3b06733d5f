#pragma once
#include <functional>
#include <string>

#include "harness/cli/exit_code.hpp"
#include "harness/report/case_report.hpp"

namespace kvproof::harness {

/// Runs one case; a corrupt file, or a backend that is lost on the way, becomes a report instead of ending the run.
[[nodiscard]] CaseReport guarded_case(const std::string& name, const std::string& backend, const std::function<CaseReport()>& run);

/// Prints reports as they come and sums them up.
class Tally {
 public:
  Tally(std::string backend, bool jsonl) : backend_(std::move(backend)), jsonl_(jsonl) {}

  void add(const CaseReport& report);
  /// The last line, `PASS engine: 28 files, 751 rows compared, worst 0.26 of the bound (…)`; nothing for JSON lines.
  [[nodiscard]] ExitCode finish(const char* noun) const;

 private:
  std::string backend_;
  bool jsonl_;
  ExitCode code_ = kExpected;
  std::size_t cases_ = 0, failed_ = 0, rows_ = 0;
  double worst_ = 0;
  std::string worst_where_;
};

}  // namespace kvproof::harness
