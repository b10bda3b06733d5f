#pragma once
#include <memory>
#include <string>
#include <vector>

#include "harness/cli/check_run.hpp"
#include "harness/report/law_report.hpp"
#include "harness/verdict/shrink_case.hpp"

namespace kvproof::harness {

/// How the failures of a check are shown.
struct ShowOptions {
  std::string backend;             ///< as it was named
  std::string replay_arguments;    ///< backend, limits and tolerance, as a replay needs them
  std::filesystem::path failures;  ///< where failing traces are written
};

/// The failing cases of one law that fail in the same way, by their first finding.
struct FailingWay {
  FindingClass one;
  std::vector<const CheckedCase*> cases;  ///< in the order of their numbers
};

/// The ways one law fails, in the order of their first cases.
[[nodiscard]] std::vector<FailingWay> ways_of(const Law& law, const std::vector<CheckedCase>& cases);

/// Makes failing cases small, one after the other, on a backend of its own, which starts when it is first needed.
class FailureShow {
 public:
  FailureShow(const CheckRequest& request, const CheckModels& models, const ShowOptions& options) : request_(request), models_(models), options_(options) {}

  /// The first case in its smallest form, as a report, and written as a trace file. One that cannot be made smaller, because the
  /// backend is gone by then, is shown as it was found.
  [[nodiscard]] CaseReport show(const FailingWay& way);

 private:
  Backend& backend_with(const CheckedCase& each);
  SmallFailure small(const TraceFile& found, const CheckedCase& each);

  const CheckRequest& request_;
  const CheckModels& models_;
  const ShowOptions& options_;
  std::unique_ptr<Backend> backend_;
};

}  // namespace kvproof::harness
