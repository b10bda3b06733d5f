#include "harness/backends/child_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include "engine/base/error.hpp"
#include "harness/backends/child_groups.hpp"

// A child that ends is seen in one of two ways: its output pipe closes, or (when a grandchild keeps the pipe open) the process
// itself is gone. The second is looked at between polls of at most kGlance.

namespace kvproof::harness {
namespace {

using namespace std::chrono_literals;

constexpr auto kGlance = 50ms;
constexpr std::size_t kChunk = std::size_t{64} << 10U;
constexpr std::size_t kTail = 2000;

[[noreturn]] void system_failed(const std::string& what, int error) { throw Error({what, std::strerror(error), "", ""}); }

struct Pipe {
  FileDescriptor read, write;
};

/// Above the three standard numbers, so that the child's copies onto them never meet a number already in use.
FileDescriptor above_standard(FileDescriptor low) {
  if (low.number() > 2) return low;
  FileDescriptor high(::fcntl(low.number(), F_DUPFD_CLOEXEC, 3));
  if (!high.open()) system_failed("fcntl", errno);
  return high;
}

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) system_failed("pipe", errno);
  FileDescriptor read(ends[0]), write(ends[1]);
  return {above_standard(std::move(read)), above_standard(std::move(write))};
}

void set_nonblocking(const FileDescriptor& descriptor) {
  const int flags = ::fcntl(descriptor.number(), F_GETFL);
  if (flags < 0 || ::fcntl(descriptor.number(), F_SETFL, flags | O_NONBLOCK) < 0) system_failed("fcntl", errno);
}

/// What posix_spawn is told: three descriptors, a group of its own, no inherited signal settings (we ignore SIGPIPE).
class SpawnPlan {
 public:
  SpawnPlan(int in, int out, int err) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawn_file_actions_adddup2(&actions_, in, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, out, 1);
    ::posix_spawn_file_actions_adddup2(&actions_, err, 2);
    sigset_t none, defaults;
    ::sigemptyset(&none);
    ::sigemptyset(&defaults);
    ::sigaddset(&defaults, SIGPIPE);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &defaults);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }

  [[nodiscard]] int spawn(const std::vector<std::string>& words, pid_t& pid) const {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    return ::posix_spawnp(&pid, arguments[0], &actions_, &attributes_, arguments.data(), environ);
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

std::string how_it_ended(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return fmt::format("exited with code {}", info.si_status);
  return fmt::format("was killed by signal {} ({})", info.si_status, ::strsignal(info.si_status));
}

int poll_milliseconds(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::clamp<std::chrono::milliseconds>(left, 0ms, kGlance).count());
}

void poll_until(std::span<pollfd> watched, int milliseconds) {
  if (::poll(watched.data(), watched.size(), milliseconds) < 0 && errno != EINTR) system_failed("poll", errno);
}

}  // namespace

ChildProcess ChildProcess::start(const std::vector<std::string>& words) {
  Pipe in = make_pipe(), out = make_pipe(), err = make_pipe();
  ChildProcess child;
  const SpawnPlan plan(in.read.number(), out.write.number(), err.write.number());
  int failed = 0;
  child.pid_ = start_group([&] {
    pid_t pid = -1;
    failed = plan.spawn(words, pid);
    return failed == 0 ? pid : -1;
  });
  if (failed != 0) system_failed(fmt::format("cannot start \"{}\"", words[0]), failed);
  child.in_ = std::move(in.write);
  child.out_ = std::move(out.read);
  child.err_ = std::move(err.read);
  for (const auto* end : {&child.in_, &child.out_, &child.err_}) set_nonblocking(*end);
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), in_(std::move(other.in_)), out_(std::move(other.out_)), err_(std::move(other.err_)), sent_(other.sent_),
      tail_(std::move(other.tail_)) {}

ChildProcess::~ChildProcess() { kill_group(); }

// The group is killed while its leader is still there or a zombie: its number cannot have gone to somebody else.
void ChildProcess::kill_group() noexcept {
  if (pid_ < 0) return;
  ::kill(-pid_, SIGKILL);
  forget_group(pid_);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

bool ChildProcess::has_ended() const {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
}

std::vector<std::byte> ChildProcess::unasked() {
  std::vector<std::byte> bytes(4096);
  const ssize_t count = ::read(out_.number(), bytes.data(), bytes.size());
  bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return bytes;
}

void ChildProcess::write_some(std::span<const std::byte>& request) {
  const ssize_t count = ::write(in_.number(), request.data(), request.size());
  if (count >= 0) request = request.subspan(static_cast<std::size_t>(count));
  if (count < 0 && errno == EPIPE) in_.close();  // it stopped listening; its end or its silence will say the rest
  if (count < 0 && errno != EPIPE && errno != EAGAIN && errno != EINTR) system_failed("write to the backend", errno);
}

ChildProcess::Came ChildProcess::read_some(MessageFrame& reply) {
  std::array<std::byte, kChunk> bytes;
  const ssize_t count = ::read(out_.number(), bytes.data(), bytes.size());
  if (count > 0) reply.add({bytes.data(), static_cast<std::size_t>(count)});
  if (count < 0 && errno != EAGAIN && errno != EINTR) system_failed("read from the backend", errno);
  return count > 0 ? Came::something : count == 0 ? Came::the_end : Came::nothing;
}

void ChildProcess::drain_stderr() {
  std::array<char, 4096> bytes;
  // Bounded: a child that never stops writing must not keep us from our deadline.
  for (int rounds = 0; rounds < 64 && err_.open(); ++rounds) {
    const ssize_t count = ::read(err_.number(), bytes.data(), bytes.size());
    if (count < 0) return;
    if (count == 0) return err_.close();
    tail_.append(bytes.data(), static_cast<std::size_t>(count));
    if (tail_.size() > kTail) tail_.erase(0, tail_.size() - kTail);
  }
}

Ending ChildProcess::exchange(std::span<const std::byte> request, MessageFrame& reply, Clock::time_point deadline) {
  if (in_.open()) write_some(request);
  while (true) {
    const bool writing = !request.empty() && in_.open();
    // A closed descriptor is -1, which poll skips.
    std::array<pollfd, 3> watched{{{out_.number(), POLLIN, 0}, {err_.number(), POLLIN, 0}, {writing ? in_.number() : -1, POLLOUT, 0}}};
    poll_until(watched, poll_milliseconds(deadline));
    if (watched[1].revents != 0) drain_stderr();
    if (watched[2].revents != 0) write_some(request);
    const bool gone = watched[0].revents == 0 && has_ended();  // asked before the last read: what it said until then still counts
    Came came = read_some(reply);
    while (gone && came == Came::something) came = read_some(reply);
    sent_ = request.empty();
    if (reply.whole()) return Ending::whole;
    if (gone || came == Came::the_end) return Ending::ended;
    if (Clock::now() >= deadline) return Ending::late;
  }
}

// Waits in slices that grow: most children are gone within a fraction of a millisecond after their pipes closed.
std::string ChildProcess::finish(Clock::time_point deadline) {
  if (pid_ < 0) return "";
  in_.close();
  std::array<std::byte, kChunk> bytes;
  for (auto slice = 20us; !has_ended() && Clock::now() < deadline; slice = std::min(slice * 2, 5000us)) {
    drain_stderr();
    if (out_.open() && ::read(out_.number(), bytes.data(), bytes.size()) == 0) out_.close();
    std::this_thread::sleep_for(slice);
  }
  siginfo_t info{};
  const bool ended = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
  kill_group();
  drain_stderr();
  out_.close();
  err_.close();
  return ended ? how_it_ended(info) : "did not end and was killed";
}

}  // namespace kvproof::harness
