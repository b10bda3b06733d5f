#pragma once
#include <unistd.h>

#include <utility>

namespace kvproof::harness {

/// Owns one descriptor of the system; closes it. Movable, not copyable.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) noexcept : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) close(), number_ = std::exchange(other.number_, -1);
    return *this;
  }
  ~FileDescriptor() { close(); }

  [[nodiscard]] int number() const noexcept { return number_; }  ///< -1: none
  [[nodiscard]] bool open() const noexcept { return number_ >= 0; }
  void close() noexcept {
    if (open()) ::close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

}  // namespace kvproof::harness
