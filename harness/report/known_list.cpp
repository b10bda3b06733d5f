#include "harness/report/known_list.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace kvproof::harness {
namespace {

using Json = nlohmann::ordered_json;

const char* word_of(EntryState state) { return state == EntryState::no_law ? "stale" : "unexpected pass"; }

std::string why(const ListProblem& problem) {
  switch (problem.state) {
    case EntryState::no_law: return "no law is called so; see kvproof check --list";
    case EntryState::not_covered: return "the backend can play none of its traces, so nothing can fail so";
    default: return "nothing failed so";
  }
}

}  // namespace

ListReport report_of(const KnownFailing& list, const std::string& engine, const std::vector<LawOutcome>& outcomes) {
  ListReport report;
  report.engine = engine;
  report.entries = list.entries.size();
  const std::vector<EntryState> states = states_of(list, engine, outcomes);
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i] == EntryState::met) ++report.met;
    if (states[i] == EntryState::elsewhere) ++report.elsewhere;
    if (states[i] == EntryState::not_run || states[i] == EntryState::too_few) ++report.untold;
    if (is_stale(states[i])) report.problems.push_back({i, states[i], list.entries[i]});
  }
  return report;
}

std::string problem_text(const ListProblem& problem) {
  return fmt::format("{}: entry {} ({}, backend \"{}\"): {}", word_of(problem.state), problem.entry, entry_text(problem.what), problem.what.backend, why(problem));
}

std::string known_text(const std::vector<LawReport>& laws) {
  std::string text;
  for (const LawReport& law : laws)
    for (const KnownClass& known : law.known)
      text += fmt::format("known  {} {}: {} of {} traces: {}\n", law.law, class_text(known.one), known.traces, law.traces, known.reason);
  return text;
}

std::string list_text(const ListReport& list) {
  std::string text;
  for (const ListProblem& problem : list.problems) text += problem_text(problem) + "\n";
  text += fmt::format("{}: {} of {} known failures of {} met", list.file, list.met, list.entries - list.elsewhere, list.engine);
  if (list.untold != 0) text += fmt::format(", {} that this run is too small to tell", list.untold);
  if (!list.problems.empty()) text += fmt::format(", {} with no place in the list", list.problems.size());
  if (list.elsewhere != 0) text += fmt::format("; {} about other backends", list.elsewhere);
  return text + "\n";
}

std::string list_jsonl(const ListReport& list) {
  Json json = {{"known_failing", list.file}, {"engine", list.engine}, {"entries", list.entries}, {"met", list.met}, {"elsewhere", list.elsewhere}, {"untold", list.untold}};
  json["problems"] = Json::array();
  for (const ListProblem& problem : list.problems)
    json["problems"].push_back({{"entry", problem.entry}, {"law", problem.what.law}, {"backend", problem.what.backend}, {"message", problem_text(problem)}});
  json["rewrite"] = list.rewrite;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace kvproof::harness
