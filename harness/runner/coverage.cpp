#include "harness/runner/coverage.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kvproof::harness {
namespace {

using Missing = std::optional<std::string>;

/// The kind of cache a call makes, if it is one of the contract's: an unknown kind is a call that must be refused.
std::optional<std::string> kind_made(const Call& call) {
  const auto known = [](const std::string& kind) { return kind == "dynamic" || kind == "static" || kind == "static_sliding_window"; };
  if (const auto* made = std::get_if<NewCache>(&call); made != nullptr && known(made->kind)) return made->kind;
  if (const auto* made = std::get_if<Generate>(&call); made != nullptr && made->kind && known(*made->kind)) return made->kind;
  return std::nullopt;
}

std::size_t batch_of(const Call& call) {
  if (const auto* forward = std::get_if<Forward>(&call)) return forward->input_ids.size();
  if (const auto* gather = std::get_if<Gather>(&call)) return gather->rows.size();
  if (const auto* generate = std::get_if<Generate>(&call)) return generate->input_ids.size();
  return 0;
}

Missing missing_for(const Capabilities& capabilities, const Step& step, const Outcome& outcome) {
  const std::string op(op_name(step.call));
  if (!capabilities.ops.contains(op)) return "op " + op;
  if (const auto kind = kind_made(step.call); kind && !capabilities.kinds.contains(*kind)) return "kind " + *kind;
  if (capabilities.max_batch && batch_of(step.call) > *capabilities.max_batch) return fmt::format("batch above {}", *capabilities.max_batch);
  if (step.lane != 0 && !capabilities.threads) return "threads";
  if (capabilities.unbounded_window && outcome.refusal && outcome.refusal->code == Code::crop_evicted) return "crop_evicted: its window keeps every column";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> not_covered(const Capabilities& capabilities, const Trace& trace, const std::vector<Outcome>& outcomes,
                                       const RunOptions& options) {
  if (options.poison && !capabilities.poison) return "poison";
  for (std::size_t i = 0; i < trace.size(); ++i)
    if (auto missing = missing_for(capabilities, trace[i], outcomes[i])) return missing;
  return std::nullopt;
}

}  // namespace kvproof::harness
