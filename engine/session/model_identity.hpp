#pragma once
#include <memory>
#include <mutex>
#include <string>

#include "engine/model/model.hpp"

namespace kvproof {

/// A model, and how one knows it again in another process: by its weights and by what of its config changes the numbers.
///
/// Caches and sessions share one; a live cache belongs to the model object itself, a saved one to an equal identity.
/// Threads   any number; the text is computed once, by whoever asks first.
class ModelIdentity {
 public:
  explicit ModelIdentity(std::shared_ptr<const Model> model) noexcept : model_(std::move(model)) {}

  [[nodiscard]] const Model& model() const noexcept { return *model_; }
  /// JSON text: {"config": {…}, "weights_sha256": "…"}, keys sorted. Cost: the first call hashes the weights.
  [[nodiscard]] const std::string& text() const;

 private:
  std::shared_ptr<const Model> model_;
  mutable std::once_flag computed_;
  mutable std::string text_;
};

}  // namespace kvproof
