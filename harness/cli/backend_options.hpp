#pragma once
#include <memory>
#include <string>

#include "harness/backends/backend_spec.hpp"
#include "harness/cli/options.hpp"

namespace kvproof::harness {

/// Adds --backend, --timeout and --max-restarts, and makes the backend they name. Errors: UsageError, NoBackend.
void add_backend_options(OptionTable& table);
[[nodiscard]] std::unique_ptr<Backend> backend_from(const OptionValues& values);

}  // namespace kvproof::harness
