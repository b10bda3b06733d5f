#pragma once
#include <string_view>

namespace kvproof::kernels {

/// What our own loops are compiled for. Each loop has one body; the processor decides once which compilation runs.
enum class InstructionSet { baseline, avx2, avx512 };

/// The best set this processor has. KVPROOF_INSTRUCTION_SET=baseline|avx2|avx512 in the environment lowers it, never raises it.
[[nodiscard]] InstructionSet instruction_set() noexcept;
[[nodiscard]] std::string_view instruction_set_name(InstructionSet set) noexcept;

#if defined(__x86_64__)
template <class Body, class... Arguments>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2"), gnu::noinline]] void run_avx512(Arguments... arguments) {
  Body::template run<InstructionSet::avx512>(arguments...);
}
template <class Body, class... Arguments>
[[gnu::target("avx2,fma,bmi2"), gnu::noinline]] void run_avx2(Arguments... arguments) {
  Body::template run<InstructionSet::avx2>(arguments...);
}
#endif

/// Runs Body::run<set>, which must be always_inline, as compiled for this processor.
template <class Body, class... Arguments>
void run_widest(Arguments... arguments) {
#if defined(__x86_64__)
  const InstructionSet set = instruction_set();
  if (set == InstructionSet::avx512) return run_avx512<Body>(arguments...);
  if (set == InstructionSet::avx2) return run_avx2<Body>(arguments...);
#endif
  Body::template run<InstructionSet::baseline>(arguments...);
}

}  // namespace kvproof::kernels
