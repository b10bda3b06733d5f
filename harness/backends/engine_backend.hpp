#pragma once
#include <memory>

#include "harness/contract/backend.hpp"

namespace kvproof::harness {

/// The embedded GPT-2 engine (engine/session) as a backend. Lanes run on threads of their own in together().
[[nodiscard]] std::unique_ptr<Backend> make_engine_backend();

}  // namespace kvproof::harness
