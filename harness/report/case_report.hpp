#pragma once
#include <string>

#include "harness/verdict/judge.hpp"

namespace kvproof::harness {

enum class CaseVerdict { pass, fail, not_covered, nothing_compared, corrupt };

[[nodiscard]] std::string_view verdict_name(CaseVerdict verdict) noexcept;

/// One judged case, ready to be put into words.
struct CaseReport {
  std::string name;     ///< a file, or a law and its seed
  std::string backend;
  Tolerance tolerance;
  Judgement judgement;
  CaseVerdict verdict = CaseVerdict::pass;
  std::string reason;   ///< of not_covered and corrupt
  std::string replay;   ///< the one command that plays just this case again
};

/// Pass, fail, not covered, or nothing compared: from the judgement alone.
[[nodiscard]] CaseVerdict verdict_of(const Judgement& judgement) noexcept;

}  // namespace kvproof::harness
