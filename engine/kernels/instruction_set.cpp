#include "engine/kernels/instruction_set.hpp"

#include <algorithm>
#include <cstdlib>

namespace kvproof::kernels {
namespace {

InstructionSet of_this_processor() noexcept {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx2 && avx512) return InstructionSet::avx512;
  if (avx2) return InstructionSet::avx2;
#endif
  return InstructionSet::baseline;
}

InstructionSet asked_for() noexcept {
  const char* text = std::getenv("KVPROOF_INSTRUCTION_SET");
  if (text == nullptr) return InstructionSet::avx512;
  for (const InstructionSet set : {InstructionSet::baseline, InstructionSet::avx2})
    if (instruction_set_name(set) == text) return set;
  return InstructionSet::avx512;
}

}  // namespace

InstructionSet instruction_set() noexcept {
  static const InstructionSet chosen = std::min(of_this_processor(), asked_for());
  return chosen;
}

std::string_view instruction_set_name(InstructionSet set) noexcept {
  switch (set) {
    case InstructionSet::avx512: return "avx512";
    case InstructionSet::avx2: return "avx2";
    case InstructionSet::baseline: break;
  }
  return "baseline";
}

}  // namespace kvproof::kernels
