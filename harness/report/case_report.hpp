#pragma once
#include <string>

#include "harness/verdict/judge.hpp"

namespace kvproof::harness {

enum class CaseVerdict {
  pass,
  fail,
  known_failing,     ///< failed, and only as a list of known failures says
  not_covered,       ///< the backend lacks a capability that the case needs
  nothing_compared,  ///< played, but no number was there to compare
  corrupt,           ///< a file that is broken or belongs to other weights
  no_verdict,        ///< could not be played: no such file, no backend
};

[[nodiscard]] std::string_view verdict_name(CaseVerdict verdict) noexcept;

/// One judged case, ready to be put into words.
struct CaseReport {
  std::string name;     ///< a file, or a law and its seed
  std::string backend;
  Tolerance tolerance;
  Judgement judgement;
  CaseVerdict verdict = CaseVerdict::pass;
  std::string reason;   ///< of not_covered, corrupt and no_verdict
  std::string replay;   ///< the one command that plays just this case again
  std::string file, steps;  ///< of a failure of a law: its trace file, and the trace in words
  std::size_t traces = 0;   ///< of the law that fail in the same way
};

/// Why there is no verdict; empty if there is one.
[[nodiscard]] std::string reason_of(const CaseReport& report);

/// Pass, fail, not covered, or nothing compared: from the judgement alone.
[[nodiscard]] CaseVerdict verdict_of(const Judgement& judgement) noexcept;

}  // namespace kvproof::harness
