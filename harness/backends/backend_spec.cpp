#include "harness/backends/backend_spec.hpp"

#include <fmt/format.h>

#include "harness/backends/engine_backend.hpp"
#include "harness/backends/exec_backend.hpp"
#include "harness/backends/oracle_backend.hpp"

namespace kvproof::harness {

std::unique_ptr<Backend> make_backend(const std::string& spec, const BackendLimits& limits) {
  constexpr std::string_view kExec = "exec:";
  if (spec == "engine") return make_engine_backend();
  if (spec == "oracle") return make_oracle_backend();
  if (spec.starts_with(kExec)) return make_exec_backend(spec.substr(kExec.size()), limits);
  throw NoBackend({"--backend", fmt::format("\"{}\" names no backend", spec), "engine, oracle, or exec:COMMAND", ""});
}

}  // namespace kvproof::harness
