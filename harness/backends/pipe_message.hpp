#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/safetensors/reader.hpp"
#include "engine/safetensors/writer.hpp"

namespace kvproof::harness {


/// One message of the pipe protocol (docs/pipe_protocol.md): a safetensors container whose metadata hold one key, `kvproof`.
struct PipeMessage {
  std::string document;     ///< its JSON text, not parsed yet
  SafetensorsFile tensors;
};

/// Errors    ShapeError if a tensor's shape and bytes disagree, or the document is not UTF-8.
[[nodiscard]] std::vector<std::byte> encode_message(std::string document, std::span<const TensorToWrite> tensors);

/// Checks a whole message; `where` names it in errors. Errors: DataError.
[[nodiscard]] PipeMessage decode_message(std::vector<std::byte> bytes, const std::string& where);

/// Says so if bytes that should be a message begin with readable text, the commonest way to break the protocol; else empty.
[[nodiscard]] std::string printed_hint(std::span<const std::byte> bytes);

/// Collects the bytes of one message as they come, and knows from its header where it ends.
///
/// Cost      memory grows with what has come, never by a number that the other side only claims.
class MessageFrame {
 public:
  MessageFrame(std::size_t most_bytes, std::string where) : most_bytes_(most_bytes), where_(std::move(where)) {}

  /// Errors    DataError as soon as the bytes cannot become a message: a length or a header that is refused, a size above the cap.
  void add(std::span<const std::byte> bytes);

  [[nodiscard]] bool whole() const noexcept { return total_ && bytes_.size() >= *total_; }
  [[nodiscard]] std::size_t received() const noexcept { return bytes_.size(); }
  [[nodiscard]] std::optional<std::size_t> expected() const noexcept { return total_; }  ///< once the header has come
  /// Bytes behind the end of a whole message.
  [[nodiscard]] std::size_t surplus() const noexcept { return whole() ? bytes_.size() - *total_ : 0; }

  /// The bytes of a whole message; what follows them stays as the beginning of the next.
  [[nodiscard]] std::vector<std::byte> take();

 private:
  void read_length();
  void read_header();

  std::size_t most_bytes_;
  std::string where_;
  std::vector<std::byte> bytes_;
  std::optional<std::size_t> data_start_, total_;
};

}  // namespace kvproof::harness
