#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "engine/base/error.hpp"
#include "harness/contract/backend.hpp"

namespace kvproof::harness {

/// No backend to judge: exit code 2 of the command.
class NoBackend : public Error {
 public:
  using Error::Error;
};

/// What a backend in another process is granted.
struct BackendLimits {
  std::chrono::milliseconds timeout{60'000};                   ///< for one whole reply
  std::size_t max_restarts = 100;                              ///< after a breakdown
  std::size_t most_message_bytes = std::size_t{256} << 20U;    ///< of one message, either way
};

/// Makes the backend that `--backend SPEC` names: `engine`, `oracle`, or `exec:COMMAND …`.
///
/// Errors    NoBackend for a spec that names nothing, and for one that does not start.
[[nodiscard]] std::unique_ptr<Backend> make_backend(const std::string& spec, const BackendLimits& limits = {});

}  // namespace kvproof::harness
