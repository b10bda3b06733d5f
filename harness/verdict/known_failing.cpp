#include "harness/verdict/known_failing.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/laws/law.hpp"
#include "harness/verdict/pattern.hpp"

namespace kvproof::harness {
namespace {

bool speaks_of(const KnownFailure& entry, const FindingClass& one) {
  return (!entry.finding || entry.finding == one.kind) && (!entry.code || entry.code == one.code);
}

/// The outcomes an entry speaks of, and how many laws of its name there are in all.
struct Reach {
  std::vector<const LawOutcome*> ran;
  std::size_t laws = 0;
};

Reach reach_of(const KnownFailure& entry, std::span<const LawOutcome> outcomes) {
  Reach reach;
  for (const Law& law : laws()) reach.laws += matches_pattern(entry.law, law.id) ? 1 : 0;
  for (const LawOutcome& law : outcomes)
    if (matches_pattern(entry.law, law.law)) reach.ran.push_back(&law);
  return reach;
}

EntryState state_of(const KnownFailure& entry, std::string_view backend, std::span<const LawOutcome> outcomes) {
  const Reach reach = reach_of(entry, outcomes);
  if (reach.laws == 0) return EntryState::no_law;
  if (!matches_pattern(entry.backend, backend)) return EntryState::elsewhere;
  const auto fails_so = [&](const LawOutcome* law) {
    return std::ranges::any_of(law->classes, [&](const ClassCount& count) { return speaks_of(entry, count.one); });
  };
  if (std::ranges::any_of(reach.ran, fails_so)) return EntryState::met;
  if (reach.ran.size() < reach.laws) return EntryState::not_run;
  if (std::ranges::any_of(reach.ran, [&](const LawOutcome* law) { return law->cases < entry.traces; })) return EntryState::too_few;
  const bool judged = std::ranges::any_of(reach.ran, [](const LawOutcome* law) { return law->judged != 0; });
  return judged ? EntryState::not_met : EntryState::not_covered;
}

}  // namespace

bool is_stale(EntryState state) noexcept { return state == EntryState::not_met || state == EntryState::not_covered || state == EntryState::no_law; }

const KnownFailure* expecting(const KnownFailing& list, std::string_view backend, std::string_view law, const FindingClass& one) {
  const auto found = std::ranges::find_if(list.entries, [&](const KnownFailure& entry) {
    return matches_pattern(entry.law, law) && matches_pattern(entry.backend, backend) && speaks_of(entry, one);
  });
  return found == list.entries.end() ? nullptr : &*found;
}

std::vector<EntryState> states_of(const KnownFailing& list, std::string_view backend, std::span<const LawOutcome> laws) {
  std::vector<EntryState> states;
  states.reserve(list.entries.size());
  for (const KnownFailure& entry : list.entries) states.push_back(state_of(entry, backend, laws));
  return states;
}

KnownFailing rewritten(const KnownFailing& list, std::string_view backend, std::span<const LawOutcome> laws) {
  KnownFailing fresh;
  const std::vector<EntryState> states = states_of(list, backend, laws);
  for (std::size_t i = 0; i < states.size(); ++i)
    if (!is_stale(states[i])) fresh.entries.push_back(list.entries[i]);
  for (const LawOutcome& law : laws)
    for (const ClassCount& count : law.classes)
      if (expecting(list, backend, law.law, count.one) == nullptr && !(count.one.code && concerns_trace_words(*count.one.code)))
        fresh.entries.push_back({law.law, std::string(backend), count.one.kind, count.one.code, law.cases, fmt::format("{}: say why", kUnwrittenReason)});
  return fresh;
}

std::string entry_text(const KnownFailure& entry) {
  return fmt::format("{}{}{}{}{}", entry.law, entry.finding ? " " : "", entry.finding ? finding_name(*entry.finding) : "", entry.code ? " " : "",
                     entry.code ? code_name(*entry.code) : "");
}

}  // namespace kvproof::harness
