#include "engine/safetensors/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "engine/base/error.hpp"

namespace kvproof {
namespace {

// mkstemp makes files for their owner alone; a model is as readable as any other file the user makes.
mode_t usual_mode() noexcept {
  const mode_t mask = ::umask(022);
  ::umask(mask);
  return 0666 & ~mask;
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

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)), temporary_(path_.string() + ".XXXXXX") {
  fd_ = ::mkstemp(temporary_.data());
  if (fd_ < 0) refuse("cannot be made");
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
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
  if (::fchmod(fd_, usual_mode()) != 0) refuse("cannot be given its mode");
  if (::fsync(fd_) != 0) refuse("cannot be synced");
  close_checked();
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) refuse("cannot be renamed into place");
  temporary_.clear();
  if (!sync_folder(path_.parent_path())) refuse("its folder cannot be synced");
}

}  // namespace kvproof
