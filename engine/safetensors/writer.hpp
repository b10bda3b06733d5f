#pragma once
#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/safetensors/dtype.hpp"

namespace kvproof {

/// A tensor to write; `bytes` is borrowed until the call returns.
struct TensorToWrite {
  std::string name;
  Dtype dtype{};
  std::vector<std::size_t> shape;
  std::span<const std::byte> bytes;
};

/// The bytes of a container: tensors by dtype size descending, then by name; data start 8-byte aligned; no timestamps.
///
/// Errors    ShapeError if a shape and its bytes disagree, or a name stands twice.
[[nodiscard]] std::vector<std::byte> encode_safetensors(const std::map<std::string, std::string>& metadata,
                                                        std::span<const TensorToWrite> tensors);

/// Writes the same bytes to `path`: temporary name beside it, checked writes, fsync, rename.
///
/// Errors    Error naming the path and the system's reason; `path` then holds what it held before.
void write_safetensors(const std::filesystem::path& path, const std::map<std::string, std::string>& metadata,
                       std::span<const TensorToWrite> tensors);

/// Writes any bytes the same way.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::span<const std::byte>> parts);

}  // namespace kvproof
