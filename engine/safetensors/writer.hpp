#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
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
/// Errors    ShapeError if a shape and its bytes disagree, a name stands twice or is `__metadata__`, or a text is not UTF-8.
[[nodiscard]] std::vector<std::byte> encode_safetensors(const std::map<std::string, std::string>& metadata,
                                                        std::span<const TensorToWrite> tensors);

/// Writes the same bytes to `path`: temporary name beside it, checked writes, fsync, rename.
///
/// Errors    Error naming the path and the system's reason; `path` then holds what it held before.
void write_safetensors(const std::filesystem::path& path, const std::map<std::string, std::string>& metadata,
                       std::span<const TensorToWrite> tensors);

/// A tensor whose bytes are made while the file is written.
struct TensorToMake {
  std::string name;
  Dtype dtype{};
  std::vector<std::size_t> shape;
};

/// Fills `out` with the bytes of tensor `index` (of the list given) from its byte `offset` on. Called in file order; every
/// piece starts on a multiple of 8 bytes of its tensor.
using MakeBytes = std::function<void(std::size_t index, std::size_t offset, std::span<std::byte> out)>;

/// As write_safetensors, for tensors that need not be in memory.
///
/// Cost      one buffer of 1 MiB on top of the header.
void write_safetensors_in_pieces(const std::filesystem::path& path, const std::map<std::string, std::string>& metadata,
                                 std::span<const TensorToMake> tensors, const MakeBytes& make);

/// Writes any bytes the same way.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::span<const std::byte>> parts);

}  // namespace kvproof
