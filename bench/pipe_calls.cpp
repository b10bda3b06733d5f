// What a call costs through the pipe (docs/pipe_protocol.md) beside the same call in process:
//
//   pipe_calls COMMAND MODEL_FOLDER [ROUNDS]      e.g. pipe_calls 'build/release/kvproof serve' golden/seed
//
// Rounds of eight calls in turn here and there; of each the fastest round counts, the one in which nobody else wanted the processor.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>

#include "engine/kernels/kernels.hpp"
#include "harness/backends/engine_backend.hpp"
#include "harness/backends/exec_backend.hpp"

namespace {

using namespace kvproof::harness;

/// A backend that has a cache `a`, and its fastest round of a call so far.
struct Side {
  std::unique_ptr<Backend> backend;
  double best = 1e9;  ///< microseconds a call

  void begin(const std::string& model) {
    backend->open("main", model);
    backend->begin("bench", {});
    (void)backend->call(NewCache{"a", "dynamic"}, 0);
  }

  void round(const Call& call) {
    constexpr int kCalls = 8;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i)
      if (!std::holds_alternative<Answer>(backend->call(call, 0))) throw NoBackend({"a call was not answered", "", "", ""});
    best = std::min(best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / kCalls);
  }
};

void measure(const std::string& name, const Call& call, Side& inside, Side& piped, int rounds) {
  inside.best = piped.best = 1e9;
  for (int i = 0; i < rounds; ++i) {
    inside.round(call);
    piped.round(call);
  }
  fmt::print("{:<20} {:>8.1f} us in process  {:>8.1f} us through the pipe  {:>+8.1f} us\n", name, inside.best, piped.best, piped.best - inside.best);
}

void run(const std::string& command, const std::string& model, int rounds) {
  Side inside{make_engine_backend()}, piped{make_exec_backend(command, {})};
  inside.begin(model);
  piped.begin(model);
  fmt::print("{} rounds of 8 calls, the fastest of each; {}\n", rounds, kvproof::kernels::blas_description());
  measure("length", Length{"a"}, inside, piped, rounds);
  measure("forward 1 x 1", Forward{.cache = "a", .input_ids = {{1}}, .use_cache = false}, inside, piped, rounds);
  measure("forward 2 x 4", Forward{.cache = "a", .input_ids = {{1, 2, 3, 4}, {4, 3, 2, 1}}, .use_cache = false}, inside, piped, rounds);
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return fmt::print(stderr, "pipe_calls COMMAND MODEL_FOLDER [ROUNDS]\n"), 64;
  try {
    run(words[1], words[2], count > 3 ? std::stoi(words[3]) : 400);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "pipe_calls: {}\n", error.what());
    return 2;
  }
}
