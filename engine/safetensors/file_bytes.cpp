#include "engine/safetensors/file_bytes.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "engine/base/error.hpp"

namespace kvproof {
namespace {

[[noreturn]] void refuse_errno(const std::filesystem::path& path, const char* what) {
  throw Error({path.string(), std::string(what) + ": " + std::generic_category().message(errno), "", ""});
}

// Closes the descriptor on every way out; a map outlives it.
class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) refuse_errno(path, "cannot be opened");
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(fd_); }
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

std::size_t regular_size(int fd, const std::filesystem::path& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) refuse_errno(path, "cannot be examined");
  const char* kind = S_ISDIR(info.st_mode) ? "is a directory" : S_ISFIFO(info.st_mode) ? "is a pipe" : "is a device or a socket";
  if (!S_ISREG(info.st_mode)) throw Error({path.string(), kind, "a regular file", ""});
  return static_cast<std::size_t>(info.st_size);
}

}  // namespace

FileBytes FileBytes::map(const std::filesystem::path& path) {
  const Descriptor file(path);  // O_NONBLOCK: opening a pipe nobody writes to must not hang
  const std::size_t size = regular_size(file.get(), path);
  FileBytes result;
  if (size == 0) return result;  // mmap refuses an empty range
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (start == MAP_FAILED) refuse_errno(path, "cannot be mapped");
  result.bytes_ = {static_cast<const std::byte*>(start), size};
  result.mapped_ = true;
  return result;
}

FileBytes FileBytes::own(std::vector<std::byte> bytes) noexcept {
  FileBytes result;
  result.buffer_ = std::move(bytes);
  result.bytes_ = result.buffer_;
  return result;
}

FileBytes FileBytes::copied_for(std::size_t aligned) const {
  constexpr std::size_t kAlignment = 8;
  FileBytes result;
  result.buffer_.resize(bytes_.size() + kAlignment);
  const auto start = reinterpret_cast<std::uintptr_t>(result.buffer_.data()) + aligned;
  const std::size_t shift = (kAlignment - start % kAlignment) % kAlignment;
  std::ranges::copy(bytes_, result.buffer_.begin() + static_cast<std::ptrdiff_t>(shift));
  result.bytes_ = std::span<const std::byte>(result.buffer_).subspan(shift, bytes_.size());
  return result;
}

FileBytes::FileBytes(FileBytes&& other) noexcept
    : buffer_(std::move(other.buffer_)), bytes_(std::exchange(other.bytes_, {})), mapped_(std::exchange(other.mapped_, false)) {}

FileBytes& FileBytes::operator=(FileBytes&& other) noexcept {
  std::swap(buffer_, other.buffer_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

FileBytes::~FileBytes() {
  if (mapped_) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace kvproof
