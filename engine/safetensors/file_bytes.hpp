#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace kvproof {

/// The bytes of a regular file, mapped read-only, or of a buffer.
///
/// Owns      the map or the buffer. Movable; the bytes stay where they are.
/// Errors    Error with the system's reason; a directory, pipe or device is refused in words.
class FileBytes {
 public:
  [[nodiscard]] static FileBytes map(const std::filesystem::path& path);
  [[nodiscard]] static FileBytes own(std::vector<std::byte> bytes) noexcept;
  /// A copy whose byte `aligned` lies on a multiple of 8.
  [[nodiscard]] FileBytes copied_for(std::size_t aligned) const;

  FileBytes(FileBytes&& other) noexcept;
  FileBytes& operator=(FileBytes&& other) noexcept;
  ~FileBytes();

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  FileBytes() = default;
  std::vector<std::byte> buffer_;
  std::span<const std::byte> bytes_;
  bool mapped_ = false;
};

}  // namespace kvproof
