#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "harness/backends/backend_spec.hpp"

namespace kvproof::harness {

/// A command as a backend, spoken to by the pipe protocol (docs/pipe_protocol.md). The child starts here and is greeted.
///
/// A child that ends, is late or breaks the protocol costs one case: its call is a Breakdown (`crashed`, `timed_out`,
/// `protocol_error`), and the next begin() starts another child with the same models.
/// Owns      the child and its process group; destroying it says `close`, waits two seconds, then kills.
/// Threads   from here on the whole process ignores SIGPIPE and ends its children with itself on SIGINT, SIGTERM and SIGHUP,
///           unless the program handles those.
/// Errors    NoBackend if it does not start, ends at once, does not answer hello, open or its first begin, or was restarted
///           too often.
/// Cost      a call is a write and a read on a pipe: tens of microseconds.
[[nodiscard]] std::unique_ptr<Backend> make_exec_backend(const std::string& command, const BackendLimits& limits);

}  // namespace kvproof::harness
