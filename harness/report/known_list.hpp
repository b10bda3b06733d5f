#pragma once
#include <string>
#include <vector>

#include "harness/report/law_report.hpp"
#include "harness/verdict/known_failing.hpp"

namespace kvproof::harness {

/// An entry of a list of known failures that has no place in it any more.
struct ListProblem {
  std::size_t entry = 0;  ///< its number in the list, from 0
  EntryState state = EntryState::not_met;
  KnownFailure what;
};

/// What became of a list of known failures as a whole.
struct ListReport {
  std::string file;
  std::string engine;   ///< the backend's own name and version
  std::string rewrite;  ///< the command that writes the list anew
  std::size_t entries = 0, met = 0, elsewhere = 0, untold = 0;
  std::vector<ListProblem> problems;
};

/// The report of a run on `engine` that ended in these outcomes.
[[nodiscard]] ListReport report_of(const KnownFailing& list, const std::string& engine, const std::vector<LawOutcome>& outcomes);

/// `unexpected pass: entry 3 (mask.refused wrong_logits, backend "engine *"): did not fail so`
[[nodiscard]] std::string problem_text(const ListProblem& problem);

/// A short line for each way of failing that was expected.
[[nodiscard]] std::string known_text(const std::vector<LawReport>& laws);

/// A line for each problem, then the list's figures.
[[nodiscard]] std::string list_text(const ListReport& list);

/// One JSON object on one line (docs/known_failing.md).
[[nodiscard]] std::string list_jsonl(const ListReport& list);

}  // namespace kvproof::harness
