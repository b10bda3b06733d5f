#include "harness/contract/backend.hpp"

namespace kvproof::harness {

std::vector<Reply> Backend::together(std::span<const Call> calls) {
  std::vector<Reply> replies;
  for (const Call& each : calls) replies.push_back(call(each));
  return replies;
}

}  // namespace kvproof::harness
