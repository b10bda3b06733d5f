#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <csignal>
#include <iostream>

#include "engine/kernels/kernels.hpp"
#include "harness/backends/backend_spec.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/program.hpp"

namespace kvproof::harness {
namespace {

struct Command {
  const char* name;
  const char* summary;
  ExitCode (*run)(const Arguments&);
};

constexpr std::array<Command, 7> kCommands = {{
    {"check", "judge a backend law by law", run_check},
    {"golden", "verify, show, make or diff golden files", run_golden},
    {"replay", "play a trace file on a backend and judge it", run_replay},
    {"shrink", "make a failing trace file as small as it can be", run_shrink},
    {"model", "make a model from a seed, or say what a folder holds", run_model},
    {"generate", "greedy generation with the embedded engine", run_generate},
    {"serve", "the embedded engine behind a pipe, for exec:", run_serve},
}};

void print_help() {
  std::cout << "kvproof proves or breaks the KV cache of a transformer engine.\n\nusage: kvproof COMMAND … (each has --help)\n\n";
  for (const Command& command : kCommands) std::cout << fmt::format("  {:<10} {}\n", command.name, command.summary);
  std::cout << "  --version  the version, and the BLAS with the kernel it chose\n\n"
               "exit: 0 as expected, 1 violations, 2 no verdict, 3 corrupt data, 64 usage, 70 our own fault\n";
}

ExitCode dispatch(const Arguments& arguments) {
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") return print_help(), arguments.empty() ? kUsage : kExpected;
  if (arguments[0] == "--version") {
    std::cout << fmt::format("kvproof {} ({})\n", KVPROOF_VERSION, kernels::blas_description());
    return kExpected;
  }
  for (const Command& command : kCommands)
    if (arguments[0] == command.name) return command.run({arguments.begin() + 1, arguments.end()});
  throw UsageError({"kvproof", fmt::format("unknown command \"{}\"", arguments[0]), "", "Try kvproof --help"});
}

ExitCode complain(ExitCode code, const std::exception& error) {
  std::cout.flush();
  std::cerr << fmt::format("{}{}\n", code == kOurFault ? "harness_fault: " : "", error.what());
  return code;
}

ExitCode run(const Arguments& arguments) {
  try {
    const ExitCode code = dispatch(arguments);
    std::cout.flush();
    if (!std::cout) return worse(code, complain(kNoVerdict, Error({"standard output", "a write failed", "", "Is the disk full, or the reader gone?"})));
    return code;
  } catch (const UsageError& error) {
    return complain(kUsage, error);
  } catch (const DataError& error) {
    return complain(kCorrupt, error);
  } catch (const Error& error) {
    return complain(kNoVerdict, error);
  } catch (const std::exception& error) {
    return complain(kOurFault, error);
  }
}

/// A closed standard stream must fail when it is used, not lend its number to the next file that is opened.
void occupy_standard_streams() {
  for (const int stream : {0, 1, 2})
    if (fcntl(stream, F_GETFD) == -1) (void)open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY);
}

}  // namespace
}  // namespace kvproof::harness

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is a failed write, and a dead child is a verdict
  kvproof::harness::occupy_standard_streams();
  if (argc > 0) kvproof::harness::set_program(argv[0]);
  return kvproof::harness::run(argc > 0 ? kvproof::harness::Arguments(argv + 1, argv + argc) : kvproof::harness::Arguments{});
}
