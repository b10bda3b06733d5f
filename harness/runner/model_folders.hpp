#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "harness/trace/trace_file.hpp"

namespace kvproof::harness {

/// A folder of our own under the system's temporary folder, removed with this object. Made on first use.
class TemporaryFolder {
 public:
  TemporaryFolder() = default;
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  [[nodiscard]] const std::filesystem::path& path();

 private:
  std::filesystem::path path_;
};

/// The models of a trace file as folders on disk. Generated ones live in a temporary folder that goes with this object.
///
/// Errors    DataError if a folder is not a model, or holds other weights than the file names.
class ModelFolders {
 public:
  /// `beside` is the trace file's folder: relative folders start there.
  ModelFolders(const std::map<std::string, ModelSource>& models, const std::filesystem::path& beside);

  [[nodiscard]] const std::map<std::string, std::filesystem::path>& folders() const noexcept { return folders_; }

 private:
  TemporaryFolder temporary_;
  std::map<std::string, std::filesystem::path> folders_;
};

}  // namespace kvproof::harness
