#pragma once
#include <cstddef>
#include <vector>

#include "engine/session/cache_options.hpp"
#include "engine/session/model_identity.hpp"
#include "engine/session/past_mask.hpp"

namespace kvproof {

/// A cache as plain data: what docs/saved_cache.md writes down.
struct SavedCache {
  CacheOptions options;
  std::size_t length = 0, gone = 0;
  PastMask mask;                 ///< [B][length]; its batch is the cache's
  std::vector<KvArrays> layers;  ///< [n_layer]: columns gone .. length-1
};

/// The safetensors container of a cache.
[[nodiscard]] std::vector<std::byte> encode_saved_cache(const SavedCache& saved, const ModelIdentity& owner);

/// Reads a container and checks every number in it against the others and against the model.
///
/// Errors    DataError for bytes that no cache was saved as; Refused model_mismatch for another model's cache.
/// Cost      allocates by the size of the container only.
[[nodiscard]] SavedCache decode_saved_cache(std::vector<std::byte> bytes, const ModelIdentity& owner);

}  // namespace kvproof
