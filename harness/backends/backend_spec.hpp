#pragma once
#include <memory>
#include <string>

#include "harness/contract/backend.hpp"

namespace kvproof::harness {

/// No backend to judge: exit code 2 of the command.
class NoBackend : public Error {
 public:
  using Error::Error;
};

/// Makes the backend that `--backend SPEC` names: `engine`, `oracle`, or `exec:COMMAND …`.
///
/// Errors    UsageError-like Error for a spec that names nothing; NoBackend if it does not start.
[[nodiscard]] std::unique_ptr<Backend> make_backend(const std::string& spec);

}  // namespace kvproof::harness
