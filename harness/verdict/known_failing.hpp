#pragma once
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/verdict/finding.hpp"

namespace kvproof::harness {

/// One entry of a list of known failures: which failures of which backend are expected, and why.
struct KnownFailure {
  std::string law, backend;            ///< patterns with `*`
  std::optional<FindingKind> finding;  ///< absent: any
  std::optional<Code> code;            ///< absent: any, or none
  std::size_t traces = 100;            ///< cases of a law that are enough for the failure to show
  std::string reason;
};

/// A list, version 1.0 (docs/known_failing.md).
struct KnownFailing {
  std::vector<KnownFailure> entries;
};

/// What a reader makes of a reason that nobody has written yet.
enum class Unwritten { refused, kept };

inline constexpr std::string_view kUnwrittenReason = "TODO";  ///< how such a reason begins

/// Errors    DataError for text that is no list, another major version, unknown fields, names that do not exist, a reason that is
///           empty or (refused) not written, two entries that say the same, an entry that would expect almost anything.
[[nodiscard]] KnownFailing parse_known_failing(std::string_view text, const std::string& where, Unwritten unwritten);

/// The list's text, one entry a line.
[[nodiscard]] std::string format_known_failing(const KnownFailing& list);

/// How often a law failed in one way.
struct ClassCount {
  FindingClass one;
  std::size_t traces = 0;
};

/// What became of one law that was selected.
struct LawOutcome {
  std::string law;
  std::size_t cases = 0;   ///< played, or not covered
  std::size_t judged = 0;  ///< of them
  std::vector<ClassCount> classes;
};

/// What became of one entry.
enum class EntryState {
  met,          ///< a law failed so
  elsewhere,    ///< about another backend
  not_run,      ///< some law it speaks of was not selected, and the others did not fail so
  too_few,      ///< too few cases to tell
  not_covered,  ///< the backend can play none of its laws: nothing can fail so
  not_met,      ///< unexpected pass
  no_law,       ///< no law of that name
};

/// Whether an entry in this state has no place in the list any more.
[[nodiscard]] bool is_stale(EntryState state) noexcept;

/// The first entry that expects this failure of this backend (its name and version), or null.
[[nodiscard]] const KnownFailure* expecting(const KnownFailing& list, std::string_view backend, std::string_view law, const FindingClass& one);

/// The state of each entry after a run.
[[nodiscard]] std::vector<EntryState> states_of(const KnownFailing& list, std::string_view backend, std::span<const LawOutcome> laws);

/// The list as this run would have it: stale entries gone, an entry for each failure that none expects (but those about the words of a
/// trace: no list takes them), its reason to be written.
[[nodiscard]] KnownFailing rewritten(const KnownFailing& list, std::string_view backend, std::span<const LawOutcome> laws);

/// `mask.refused accepts_misuse mask_length`
[[nodiscard]] std::string entry_text(const KnownFailure& entry);

}  // namespace kvproof::harness
