#pragma once
#include <memory>

#include "harness/contract/backend.hpp"

namespace kvproof::harness {

/// The oracle as a backend: each call recomputed from its history. Judged on goldens it proves the oracle; judged by itself in
/// `check` it proves nothing.
[[nodiscard]] std::unique_ptr<Backend> make_oracle_backend();

}  // namespace kvproof::harness
