#include "engine/forward/workspace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "engine/base/checked_size.hpp"
#include "engine/base/error.hpp"
#include "engine/kernels/kernels.hpp"

namespace kvproof {
namespace {

constexpr std::align_val_t kAlignment{64};

std::size_t product(std::size_t rows, std::size_t columns) {
  const auto floats = checked_product(rows, columns);
  if (!floats || !checked_product(*floats, sizeof(float)))
    throw Error({"workspace", fmt::format("{} x {} floats", rows, columns), "a size that can be addressed", ""});
  return *floats;
}

}  // namespace

std::size_t score_stride(std::size_t keys) noexcept { return (keys + kernels::kPadding - 1) / kernels::kPadding * kernels::kPadding; }

void AlignedFloats::FreeAligned::operator()(float* data) const noexcept { ::operator delete(data, kAlignment); }

void AlignedFloats::reserve(std::size_t size) {
  if (size <= size_) return;
  data_.reset(static_cast<float*>(::operator new(size * sizeof(float), kAlignment)));
  size_ = size;
}

void Workspace::reserve(const Config& config, std::size_t rows, std::size_t keys) {
  hidden.reserve(product(rows, config.n_embd));
  normed.reserve(product(rows, config.n_embd));
  qkv.reserve(product(rows, 3 * config.n_embd));
  attended.reserve(product(rows, config.n_embd));
  inner.reserve(product(rows, config.n_inner));
  scores.reserve(product(std::min(rows, kQueryBlock), score_stride(keys)));
  runs.reserve(keys);
}

}  // namespace kvproof
