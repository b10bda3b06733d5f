#pragma once
#include <cstddef>

#include "harness/contract/backend.hpp"

namespace kvproof::harness {

/// The other side of `exec:`: answers requests read from `in` on `out`, with `backend`, until `close` or the end of the input.
///
/// An unknown op is `unsupported`; a call with a missing field or one of a wrong type is refused as `bad_argument`.
/// Errors    DataError if the input is no message of the protocol; Error if the system fails; std::runtime_error if the backend
///           throws or breaks down over a call: only the harness may say crashed, so this side has to end.
void serve_pipe(Backend& backend, int in, int out);

}  // namespace kvproof::harness
