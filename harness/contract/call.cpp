#include "harness/contract/call.hpp"

#include <array>

namespace kvproof::harness {
namespace {

constexpr std::array<std::string_view, std::variant_size_v<Call>> kOpNames = {
    "new", "forward", "clone", "crop", "gather", "reset", "drop", "length", "read", "save", "load", "generate"};

struct NameOfCache {
  using Result = std::optional<std::string_view>;
  Result operator()(const Generate&) const { return std::nullopt; }
  Result operator()(const Forward& forward) const { return forward.cache ? Result(*forward.cache) : std::nullopt; }
  Result operator()(const auto& call) const { return call.cache; }
};

}  // namespace

std::string_view op_name(const Call& call) noexcept { return kOpNames[call.index()]; }

std::optional<std::string_view> cache_of(const Call& call) noexcept { return std::visit(NameOfCache{}, call); }

}  // namespace kvproof::harness
