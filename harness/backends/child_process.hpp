#pragma once
#include <sys/types.h>

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "harness/backends/file_descriptor.hpp"
#include "harness/backends/pipe_message.hpp"

namespace kvproof::harness {

using Clock = std::chrono::steady_clock;

/// How an exchange with a child came to its end.
enum class Ending {
  whole,  ///< the reply is whole
  ended,  ///< no more can come: the child ended, or closed its standard output
  late,   ///< the deadline passed
};

/// A command in a process group of its own, spoken to over its standard input and output.
///
/// Owns      the process and three pipes. Destroying it kills the whole group (a grandchild may hold the pipes) and reaps the child.
/// Threads   one at a time.
/// Errors    Error naming the system's reason if the command cannot be started, or the system fails us afterwards.
class ChildProcess {
 public:
  /// `words` as execvp takes them, the first looked up in PATH.
  [[nodiscard]] static ChildProcess start(const std::vector<std::string>& words);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) = delete;
  ~ChildProcess();

  /// What the child has said unasked, up to a page; empty = nothing. Does not wait.
  [[nodiscard]] std::vector<std::byte> unasked();

  /// Writes `request` and reads into `reply` until it is whole; both at once, so that neither side can block the other. The
  /// child's standard error is read all the while. What went in is `sent()`.
  ///
  /// Errors    DataError from `reply` if the bytes cannot become a message.
  [[nodiscard]] Ending exchange(std::span<const std::byte> request, MessageFrame& reply, Clock::time_point deadline);

  /// True if all of the last request was taken by the pipe.
  [[nodiscard]] bool sent() const noexcept { return sent_; }

  /// Closes the child's standard input and gives it until `deadline` to end by itself; then kills the group, and reaps.
  /// What it was: "exited with code 3", "was killed by signal 11 (Segmentation fault)", "did not end and was killed". Once.
  std::string finish(Clock::time_point deadline);

  /// The last bytes of its standard error as far as they have been read, at most 2000.
  [[nodiscard]] const std::string& stderr_tail() const noexcept { return tail_; }

 private:
  ChildProcess() = default;
  enum class Came { something, nothing, the_end };
  [[nodiscard]] bool has_ended() const;
  void write_some(std::span<const std::byte>& request);
  [[nodiscard]] Came read_some(MessageFrame& reply);
  void drain_stderr();
  void kill_group() noexcept;

  pid_t pid_ = -1;
  FileDescriptor in_, out_, err_;
  bool sent_ = false;
  std::string tail_;
};

}  // namespace kvproof::harness
