#pragma once
#include <memory>
#include <string>

#include "harness/backends/backend_spec.hpp"
#include "harness/cli/options.hpp"

namespace kvproof::harness {

/// Adds --backend (default: `standard`), --timeout and --max-restarts (default: `restarts`), and makes the backend they name.
/// Errors: UsageError, NoBackend.
void add_backend_options(OptionTable& table, const char* standard = "engine", const char* restarts = "100");
[[nodiscard]] std::unique_ptr<Backend> backend_from(const OptionValues& values);

/// The backend's part of a replay command: " --backend engine", and the limits that were asked for.
[[nodiscard]] std::string backend_arguments(const OptionValues& values);

}  // namespace kvproof::harness
