#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/base/error.hpp"
#include "harness/backends/backend_spec.hpp"
#include "harness/backends/file_descriptor.hpp"
#include "harness/backends/pipe_server.hpp"
#include "harness/cli/commands.hpp"

namespace kvproof::harness {
namespace {

namespace po = boost::program_options;

[[noreturn]] void system_failed(const char* what) { throw Error({what, std::strerror(errno), "", ""}); }

/// The protocol's own descriptor. What engine code prints or reads from here on cannot meet the messages.
FileDescriptor moved_away(int standard, int stand_in) {
  FileDescriptor own(::fcntl(standard, F_DUPFD_CLOEXEC, 3));
  if (!own.open() || ::dup2(stand_in, standard) < 0) system_failed("kvproof serve");
  return own;
}

}  // namespace

ExitCode run_serve(const Arguments& arguments) {
  OptionTable table("options");
  table.add_options()("backend", po::value<std::string>()->default_value("engine"), "engine or oracle");
  const auto values = parse_options({"serve", "", "(speaks the pipe protocol on standard input and output)"}, table, arguments);
  if (!values) return kExpected;
  const FileDescriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const FileDescriptor in = moved_away(STDIN_FILENO, nothing.number()), out = moved_away(STDOUT_FILENO, STDERR_FILENO);
  const auto backend = make_backend((*values)["backend"].as<std::string>());
  serve_pipe(*backend, in.number(), out.number());
  return kExpected;
}

}  // namespace kvproof::harness
