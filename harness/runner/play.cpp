#include "harness/runner/play.hpp"

#include <algorithm>
#include <map>

namespace kvproof::harness {
namespace {

Reply guarded(const auto& ask) {
  try {
    return ask();
  } catch (const std::exception& error) {
    return Breakdown{"backend_threw", error.what()};
  } catch (...) {
    return Breakdown{"backend_threw", "something that is no std::exception"};
  }
}

bool broke_down(const Observation& seen) { return seen.reply && std::holds_alternative<Breakdown>(*seen.reply); }

/// The steps of each lane, in order.
std::map<std::size_t, std::vector<std::size_t>> steps_by_lane(const Trace& trace) {
  std::map<std::size_t, std::vector<std::size_t>> lanes;
  for (std::size_t i = 0; i < trace.size(); ++i) lanes[trace[i].lane].push_back(i);
  return lanes;
}

void play_round(Backend& backend, const Trace& trace, const std::vector<std::size_t>& round, Observations& seen) {
  std::vector<Call> given;  // the backend gets copies: what it does to them is seen afterwards
  for (const std::size_t step : round) given.push_back(trace[step].call);
  std::vector<LaneCall> calls;
  for (std::size_t i = 0; i < round.size(); ++i) calls.push_back({trace[round[i]].lane, &given[i]});
  std::vector<Reply> replies;
  const Reply outcome = guarded([&]() -> Reply {
    replies = backend.together(calls);
    return Answer{};
  });
  const bool complete = replies.size() == round.size();
  for (std::size_t i = 0; i < round.size(); ++i) {
    seen[round[i]].reply = complete ? replies[i] : std::holds_alternative<Breakdown>(outcome) ? outcome : Breakdown{"protocol_error", "together: wrong number of replies"};
    seen[round[i]].arrays_changed = given[i] != trace[round[i]].call;
  }
}

Observations play_lanes(Backend& backend, const Trace& trace) {
  const auto lanes = steps_by_lane(trace);
  std::size_t rounds = 0;
  for (const auto& [lane, steps] : lanes) rounds = std::max(rounds, steps.size());
  Observations seen(trace.size());
  for (std::size_t k = 0; k < rounds && std::ranges::none_of(seen, broke_down); ++k) {
    std::vector<std::size_t> round;
    for (const auto& [lane, steps] : lanes)
      if (k < steps.size()) round.push_back(steps[k]);
    play_round(backend, trace, round, seen);
  }
  return seen;
}

}  // namespace

Observations play(Backend& backend, const Trace& trace, const std::string& name, const RunOptions& options) {
  backend.begin(name, options);
  if (std::ranges::any_of(trace, [](const Step& step) { return step.lane != 0; })) return play_lanes(backend, trace);
  Observations seen(trace.size());
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const Call given = trace[i].call;
    seen[i].reply = guarded([&] { return backend.call(given, 0); });
    seen[i].arrays_changed = given != trace[i].call;
    if (broke_down(seen[i])) break;
  }
  return seen;
}

}  // namespace kvproof::harness
