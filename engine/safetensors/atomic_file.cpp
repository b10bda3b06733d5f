#include "engine/safetensors/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include "engine/base/error.hpp"

namespace kvproof {
namespace {

// A new file beside `path`, as readable as any other that the user makes (mkstemp would make it for its owner alone).
int open_beside(const std::filesystem::path& path, std::string& name) {
  static std::atomic<unsigned> counter{0};
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    name = fmt::format("{}.{}-{}.tmp", path.string(), ::getpid(), counter++);
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

// So that the rename itself survives a power cut. Some file systems cannot sync a folder: EINVAL is no failure of ours.
bool sync_folder(const std::filesystem::path& folder) noexcept {
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool synced = ::fsync(fd) == 0 || errno == EINVAL;
  const int reason = errno;
  ::close(fd);
  errno = reason;
  return synced;
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)), fd_(open_beside(path_, temporary_)) {
  if (fd_ < 0) refuse("cannot be made");
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!renamed_) ::unlink(temporary_.c_str());
}

void AtomicFile::refuse(const char* what) const {
  throw Error({path_.string(), fmt::format("{}: {}", what, std::generic_category().message(errno)), "", ""});
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 30U;  // Linux writes at most 2 GiB at once
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), std::min(bytes.size(), kMost));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refuse("cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::close_checked() {
  if (::close(std::exchange(fd_, -1)) != 0) refuse("cannot be closed");
}

void AtomicFile::commit() {
  if (::fsync(fd_) != 0) refuse("cannot be synced");
  close_checked();
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) refuse("cannot be renamed into place");
  renamed_ = true;
  if (!sync_folder(path_.parent_path())) refuse("its folder cannot be synced");
}

}  // namespace kvproof
