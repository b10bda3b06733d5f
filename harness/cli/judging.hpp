#pragma once
#include <filesystem>
#include <functional>
#include <string>

#include "harness/cli/exit_code.hpp"
#include "harness/oracle/expectation.hpp"
#include "harness/report/case_report.hpp"
#include "harness/runner/play.hpp"
#include "harness/trace/trace_file.hpp"

namespace kvproof::harness {

/// The exit code that one case's verdict stands for.
[[nodiscard]] ExitCode code_of(CaseVerdict verdict) noexcept;

/// What a trace file's header asks for, over the default.
[[nodiscard]] Tolerance tolerance_of(const RunHeader& run);

/// Runs one case; a file that is corrupt or not there, or a backend that is gone, becomes a report instead of ending the run.
[[nodiscard]] CaseReport guarded_case(const std::string& name, const std::string& backend, const std::function<CaseReport()>& run);

/// A trace of one model whose answers are known before it is played; borrowed.
struct KnownTrace {
  const Trace& trace;
  const std::filesystem::path& folder;  ///< of the model `main`
  const std::vector<Expectation>& expected;
  const Oracles& oracles;
  RunOptions options = {};
};

/// Plays a trace and judges it: `report`, which names the case and the tolerance, gets the judgement and the verdict. A trace that the
/// backend cannot play is not covered: it is not played, nor its model opened.
[[nodiscard]] Observations play_known(const KnownTrace& known, Backend& backend, CaseReport& report);

/// Prints reports as they come and sums them up.
class Tally {
 public:
  Tally(std::string backend, bool jsonl) : backend_(std::move(backend)), jsonl_(jsonl) {}

  void add(const CaseReport& report);
  /// The summary, `PASS engine: 28 files, 751 rows compared, worst 0.26 of the bound (…)`, and behind it, as the last line of a run
  /// that failed, the command that replays its first failure. Nothing for JSON lines. `noun` in the singular.
  [[nodiscard]] ExitCode finish(const char* noun) const;

 private:
  std::string backend_;
  bool jsonl_;
  ExitCode code_ = kExpected;
  std::size_t cases_ = 0, failed_ = 0, rows_ = 0;
  double worst_ = 0;
  std::string worst_where_, first_replay_;
};

}  // namespace kvproof::harness
