#pragma once
#include <sys/types.h>

#include <functional>

namespace kvproof::harness {

/// From here on a signal that would end us by default (SIGINT, SIGTERM, SIGHUP) kills every child's group first: a child has a
/// group of its own, so the terminal's Ctrl-C does not reach it. Signals that the program handles or ignores stay as they are.
///
/// Threads   any; the first call starts a thread that waits for such a signal, later ones do nothing.
void end_children_with_us();

/// Runs `spawn`, which starts a child with a group of its own and returns its pid, or -1; and remembers the group. As one step: a
/// signal that ends us comes before or after it, so that no child is left that nobody knows of.
pid_t start_group(const std::function<pid_t()>& spawn);

/// To be called before the child is reaped: afterwards the number may be another's.
void forget_group(pid_t group);

}  // namespace kvproof::harness
