#pragma once
#include <fmt/format.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.hpp"

// What the tests of this room and of its neighbours make files with.

namespace kvproof::test {

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// A file of a length word that says `length`, then `rest`.
inline std::vector<std::byte> raw_file(std::uint64_t length, std::string_view rest) {
  std::vector<std::byte> file(sizeof length);
  std::memcpy(file.data(), &length, sizeof length);
  const auto tail = bytes_of(rest);
  file.insert(file.end(), tail.begin(), tail.end());
  return file;
}

/// A file of this header and so many data bytes 0, 1, 2, ….
inline std::vector<std::byte> file_of(std::string_view header, std::size_t data_bytes = 0) {
  auto file = raw_file(header.size(), header);
  for (std::size_t i = 0; i < data_bytes; ++i) file.push_back(static_cast<std::byte>(i));
  return file;
}

/// What the error of `call` says, or "accepted".
template <class Kind = Error>
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Kind& error) {
    return error.what();
  }
  return "accepted";
}

/// A folder that is new and empty, and gone when the test ends.
class ScratchFolder {
 public:
  explicit ScratchFolder(std::string_view name)
      : path_(std::filesystem::temp_directory_path() / fmt::format("kvproof_test_{}_{}", ::getpid(), name)) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline void write_text(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace kvproof::test
