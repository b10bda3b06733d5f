#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "engine/safetensors/reader.hpp"

namespace kvproof {

/// A whole text file of at most 64 MiB. Errors: Error if it cannot be read or is larger.
[[nodiscard]] std::string read_text(const std::filesystem::path& path);

/// The weight files of a model folder, opened, in byte order of their names: model.safetensors, or the shards that
/// model.safetensors.index.json names (model.safetensors wins, as in Transformers).
///
/// Errors    Error if neither is there; DataError if the index is broken or does not tell what the shards hold.
[[nodiscard]] std::vector<SafetensorsFile> open_weight_files(const std::filesystem::path& folder);

}  // namespace kvproof
