#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/weights/config.hpp"

namespace kvproof {

/// One tensor a GPT-2 model must have.
struct ExpectedTensor {
  std::string name;                ///< without the `transformer.` prefix
  std::vector<std::size_t> shape;
  std::string_view formula;        ///< the shape in names of the config, for messages
};

/// All tensors of a model, lm_head.weight last and only where it is not tied. Twelve a layer.
[[nodiscard]] std::vector<ExpectedTensor> expected_tensors(const Config& config);

}  // namespace kvproof
