// The embedded engine behind a pipe, as `kvproof serve` has it, for tests of this room.
#include "harness/backends/engine_backend.hpp"
#include "harness/backends/pipe_server.hpp"

int main() {
  kvproof::harness::serve_pipe(*kvproof::harness::make_engine_backend(), 0, 1);
  return 0;
}
