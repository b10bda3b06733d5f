#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/history/refusals.hpp"
#include "harness/trace/trace_file.hpp"

namespace kvproof::harness {

/// The probe models: tiny GPT-2s with the real settings (tanh GELU, eps 1e-5, biases, tied head, scaled attention) and weights of
/// standard deviation 0.15: fp32 noise stays below 0.3 of the bound, and a cache in half precision passes four times the bound (tests
/// of defects/ and cli/ show both).
[[nodiscard]] const std::vector<ModelSource>& probe_models();

/// The models of case `seed` of a law: `main`, and for laws that want it `other`: of another shape, or of
/// the same with other weights, which an engine cannot tell by sizes.
[[nodiscard]] std::map<std::string, std::size_t> probe_choice(std::uint64_t seed, std::string_view models);

/// The sizes of a model source that is generated. Errors: DataError as parse_config.
[[nodiscard]] ModelFacts facts_of(const ModelSource& model);

}  // namespace kvproof::harness
