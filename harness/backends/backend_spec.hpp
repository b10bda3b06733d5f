#pragma once
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

/// Makes the backend that `--backend SPEC` names: `engine`, `oracle`, or `exec:COMMAND …`.
///
/// Errors    NoBackend for a spec that names nothing, and for one that does not start.
[[nodiscard]] std::unique_ptr<Backend> make_backend(const std::string& spec);

}  // namespace kvproof::harness
