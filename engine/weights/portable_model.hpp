#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace kvproof {

/// Writes a model folder whose weights follow from the seed alone (formula in docs/portable_generator.md): any language can
/// remake it. `config` is a config.json document; its `initializer_range` is the standard deviation of the matrices.
///
/// Errors    DataError if the config cannot be honoured; Error if the folder cannot be written.
/// Cost      one tensor in memory at a time on top of the file.
void write_portable_model(const nlohmann::json& config, std::uint64_t seed, const std::filesystem::path& folder);

}  // namespace kvproof
