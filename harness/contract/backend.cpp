#include "harness/contract/backend.hpp"

namespace kvproof::harness {

std::vector<Reply> Backend::together(std::span<const LaneCall> calls) {
  std::vector<Reply> replies;
  for (const LaneCall& each : calls) replies.push_back(call(*each.call, each.lane));
  return replies;
}

}  // namespace kvproof::harness
