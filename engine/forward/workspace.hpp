#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "engine/forward/key_runs.hpp"
#include "engine/weights/config.hpp"

namespace kvproof {

/// Floats aligned to 64 bytes that grow and are never filled: a buffer always starts at the same offset of a cache line, so that
/// the same call gives the same bits whichever workspace it runs in.
class AlignedFloats {
 public:
  /// Makes room for `size` floats; contents are lost if it grows.
  void reserve(std::size_t size);
  [[nodiscard]] std::span<float> first(std::size_t size) noexcept { return {data_.get(), size}; }

 private:
  struct FreeAligned {
    void operator()(float* data) const noexcept;
  };
  std::unique_ptr<float[], FreeAligned> data_;
  std::size_t size_ = 0;
};

/// Floats from one row of scores to the next: softmax works on whole vectors.
[[nodiscard]] std::size_t score_stride(std::size_t keys) noexcept;

/// Scratch of one running call. Grows to the largest step it has seen and is then reused.
///
/// Threads   one workspace, one running call.
class Workspace {
 public:
  /// Makes room for a step of `rows` = B * T new tokens whose queries have `keys` = S + T keys; after that run_step allocates
  /// nothing. Strong guarantee. Errors: Error if a size overflows, std::bad_alloc.
  void reserve(const Config& config, std::size_t rows, std::size_t keys);

  AlignedFloats hidden;    // [rows, n_embd], the residual stream
  AlignedFloats normed;    // [rows, n_embd]
  AlignedFloats qkv;       // [rows, 3 * n_embd]
  AlignedFloats attended;  // [rows, n_embd]
  AlignedFloats inner;     // [rows, n_inner]
  AlignedFloats scores;    // [queries of a block, score_stride(keys)]
  std::vector<KeyRun> runs;
};

}  // namespace kvproof
