#include "harness/runner/model_folders.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/base/error.hpp"
#include "engine/weights/portable_model.hpp"
#include "engine/weights/weights.hpp"

namespace kvproof::harness {
namespace {

std::filesystem::path checked_folder(const ModelSource& model, const std::filesystem::path& beside) {
  const std::filesystem::path folder = beside / model.folder;
  const std::string found = Weights::open(folder).sha256();
  if (found != model.weights_sha256)
    throw DataError({folder.string(), "weights_sha256 is " + found, model.weights_sha256, "These are other weights than the trace was made for."});
  return folder;
}

}  // namespace

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

const std::filesystem::path& TemporaryFolder::path() {
  if (!path_.empty()) return path_;
  std::string pattern = (std::filesystem::temp_directory_path() / "kvproof-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw Error({pattern, fmt::format("cannot be made: {}", std::strerror(errno)), "", "Is TMPDIR writable?"});
  return path_ = pattern;
}

ModelFolders::ModelFolders(const std::map<std::string, ModelSource>& models, const std::filesystem::path& beside) {
  for (const auto& [name, model] : models) {
    if (!model.generated()) {
      folders_[name] = checked_folder(model, beside);
      continue;
    }
    folders_[name] = temporary_.path() / fmt::format("model{}", folders_.size());
    write_portable_model(nlohmann::json::parse(model.config), model.seed, folders_[name]);
  }
}

}  // namespace kvproof::harness
