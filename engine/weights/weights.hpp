#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/safetensors/reader.hpp"
#include "engine/weights/config.hpp"

namespace kvproof {

/// A GPT-2 model folder as Transformers writes it, every tensor checked against the table of names and shapes.
///
/// Owns      the mapped files; views die with it.
/// Threads   immutable: any number of readers.
/// Errors    DataError naming the file, the tensor and both shapes for a missing, extra or mis-shaped tensor.
class Weights {
 public:
  /// Opens `folder`: config.json with model.safetensors, or with model.safetensors.index.json and its shards.
  [[nodiscard]] static Weights open(const std::filesystem::path& folder);

  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }
  [[nodiscard]] const Config& config() const noexcept { return config_; }
  [[nodiscard]] const std::string& config_text() const noexcept { return config_text_; }  ///< config.json as it lies on disk
  /// A tensor by its name without the `transformer.` prefix ("wte.weight", "h.0.attn.c_attn.weight", …). `lm_head.weight`
  /// is wte.weight where the embeddings are tied.
  [[nodiscard]] const TensorView& tensor(std::string_view name) const;
  /// SHA-256, lower-case hex, of the bytes of model.safetensors; of all shards in byte order of their names.
  [[nodiscard]] std::string sha256() const;

 private:
  Weights() = default;
  std::filesystem::path folder_;
  Config config_;
  std::string config_text_;
  std::vector<SafetensorsFile> files_;                                  // in byte order of their names
  std::vector<std::pair<std::string, const TensorView*>> tensors_;      // canonical name -> view, sorted
};

/// The elements of an F32, F16 or BF16 tensor, exactly, as float or double.
[[nodiscard]] std::vector<float> to_floats(const TensorView& tensor);
[[nodiscard]] std::vector<double> to_doubles(const TensorView& tensor);

}  // namespace kvproof
