#include "harness/cli/program.hpp"

#include "harness/cli/options.hpp"

namespace kvproof::harness {
namespace {

std::string& stored() {
  static std::string name = "kvproof";
  return name;
}

}  // namespace

void set_program(const std::string& typed) {
  if (!typed.empty()) stored() = quoted(typed);
}

const std::string& program() noexcept { return stored(); }

}  // namespace kvproof::harness
