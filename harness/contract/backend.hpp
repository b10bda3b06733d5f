#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "harness/contract/call.hpp"
#include "harness/contract/capabilities.hpp"
#include "harness/contract/reply.hpp"

namespace kvproof::harness {

/// What the runner tells a backend before a case; part of a trace file's header, so that a replay is the same run.
struct RunOptions {
  bool poison = false;  ///< fill unused slots with NaN
  bool operator==(const RunOptions&) const = default;
};

/// A call of one lane; borrowed.
struct LaneCall {
  std::size_t lane = 0;
  const Call* call = nullptr;
};

/// An engine on trial. One word per op; nothing is judged here.
///
/// A backend that throws from call() is a verdict (`backend_threw`), not our fault; open() and begin() throw Error if there is
/// no backend to judge (exit 2).
/// Threads   used by one thread; it may use threads of its own in together().
class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual const Capabilities& capabilities() const = 0;
  /// Makes a model folder known under `model`; a name opened again is another model from then on. Drops every cache.
  virtual void open(const std::string& model, const std::filesystem::path& folder) = 0;
  /// No case from here on means this model, whose folder may go. Default: nothing.
  virtual void forget(const std::string&) {}
  /// Drops every cache and saved name; `name` is the case, for messages.
  virtual void begin(const std::string& name, const RunOptions& options) = 0;
  /// Each lane has caches and saved names of its own; models are shared.
  [[nodiscard]] virtual Reply call(const Call& call, std::size_t lane) = 0;
  /// Asks for one call per lane at once (capability `threads`); the replies are in the same order. Default: one after the other.
  [[nodiscard]] virtual std::vector<Reply> together(std::span<const LaneCall> calls);
};

}  // namespace kvproof::harness
