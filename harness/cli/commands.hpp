#pragma once
#include "harness/cli/exit_code.hpp"
#include "harness/cli/options.hpp"

namespace kvproof::harness {

/// One function per word of the command line. Errors: UsageError (64), NoBackend (2), DataError (3), Error (2).
[[nodiscard]] ExitCode run_check(const Arguments& arguments);
[[nodiscard]] ExitCode run_golden(const Arguments& arguments);
[[nodiscard]] ExitCode run_golden_make(const Arguments& arguments);
[[nodiscard]] ExitCode run_golden_diff(const Arguments& arguments);
[[nodiscard]] ExitCode run_replay(const Arguments& arguments);
[[nodiscard]] ExitCode run_model(const Arguments& arguments);
[[nodiscard]] ExitCode run_generate(const Arguments& arguments);
[[nodiscard]] ExitCode run_serve(const Arguments& arguments);
[[nodiscard]] ExitCode run_shrink(const Arguments& arguments);

}  // namespace kvproof::harness
