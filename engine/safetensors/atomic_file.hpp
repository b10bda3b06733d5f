#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace kvproof {

/// A file that appears whole or not at all: written under a temporary name beside `path`, fsynced, renamed by commit().
///
/// Owns      the temporary file, which is removed unless commit() succeeded. Neither copyable nor movable.
/// Errors    Error naming the path and the system's reason; `path` then holds what it held before.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);
  /// fsync of the file, rename onto `path`, fsync of the folder.
  void commit();

 private:
  [[noreturn]] void refuse(const char* what) const;
  void close_checked();
  std::filesystem::path path_;
  std::string temporary_;
  int fd_ = -1;
  bool renamed_ = false;
};

}  // namespace kvproof
