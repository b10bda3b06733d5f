#pragma once
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/safetensors/dtype.hpp"

namespace kvproof {

class FileBytes;

/// One tensor of an open file: its bytes lie in the file's map or buffer, little-endian, row-major, aligned to the element.
struct TensorView {
  std::string name;
  Dtype dtype{};
  std::vector<std::size_t> shape;
  std::span<const std::byte> bytes;
  std::size_t header_at = 0;  ///< byte of the file where its entry stands in the header, for messages
};

/// A safetensors container, checked whole when it is opened (rules in docs/safetensors.md).
///
/// Owns      the map or the buffer; views die with it. Movable, not copyable.
/// Threads   immutable after opening: any number of readers.
/// Errors    DataError with file, byte offset, found and expected, for the first rule that is broken.
/// Cost      allocates nothing by a number that was not checked against the size of the file.
class SafetensorsFile {
 public:
  /// Maps a file read-only.
  [[nodiscard]] static SafetensorsFile open(const std::filesystem::path& path);
  /// Takes over bytes in memory; `where` names them in errors.
  [[nodiscard]] static SafetensorsFile from_bytes(std::vector<std::byte> bytes, std::string where);

  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;
  ~SafetensorsFile();

  [[nodiscard]] const std::string& where() const noexcept;
  [[nodiscard]] std::span<const TensorView> tensors() const noexcept;  ///< in byte order of their names
  [[nodiscard]] const TensorView* find(std::string_view name) const noexcept;
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const noexcept;
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept;     ///< the whole file

 private:
  struct Storage;
  static SafetensorsFile checked(FileBytes file, std::string where);
  explicit SafetensorsFile(std::unique_ptr<Storage> storage) noexcept;
  std::unique_ptr<Storage> storage_;
};

}  // namespace kvproof
