#include "harness/backends/child_groups.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

#include "engine/base/error.hpp"

// A handler may hardly do anything, and a child may be half started when a signal comes. So the handler only passes the signal on
// through a pipe, to a thread that waits until no child is being started, kills all groups, and then lets the signal end us.

namespace kvproof::harness {
namespace {

std::mutex g_mutex;
std::array<int, 2> g_pipe{-1, -1};

std::set<pid_t>& living_groups() {
  static auto* groups = new std::set<pid_t>;  // lives as long as the thread that may read it: to the very end
  return *groups;
}

void pass_on(int signal) {
  const int error = errno;
  const auto byte = static_cast<unsigned char>(signal);
  [[maybe_unused]] const ssize_t written = ::write(g_pipe[1], &byte, 1);
  errno = error;
}

void wait_for_the_end() {
  unsigned char signal = 0;
  while (::read(g_pipe[0], &signal, 1) != 1)
    if (errno != EINTR) return;
  const std::lock_guard lock(g_mutex);  // kept to the end: nobody starts another child
  for (const pid_t group : living_groups()) ::kill(-group, SIGKILL);
  std::signal(signal, SIG_DFL);
  ::kill(::getpid(), signal);
  for (;;) ::pause();
}

}  // namespace

void end_children_with_us() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (::pipe2(g_pipe.data(), O_CLOEXEC) != 0) throw Error({"pipe", std::strerror(errno), "", ""});
    std::thread(wait_for_the_end).detach();
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction present {};
      if (::sigaction(signal, nullptr, &present) == 0 && present.sa_handler == SIG_DFL) std::signal(signal, pass_on);
    }
  });
}

pid_t start_group(const std::function<pid_t()>& spawn) {
  const std::lock_guard lock(g_mutex);
  const pid_t group = spawn();
  if (group > 0) living_groups().insert(group);
  return group;
}

void forget_group(pid_t group) {
  const std::lock_guard lock(g_mutex);
  living_groups().erase(group);
}

}  // namespace kvproof::harness
