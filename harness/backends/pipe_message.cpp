#include "harness/backends/pipe_message.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "engine/base/error.hpp"
#include "engine/safetensors/header.hpp"

namespace kvproof::harness {
std::vector<std::byte> encode_message(std::string document, std::span<const TensorToWrite> tensors) {
  return encode_safetensors({{"kvproof", std::move(document)}}, tensors);
}

PipeMessage decode_message(std::vector<std::byte> bytes, const std::string& where) {
  SafetensorsFile file = SafetensorsFile::from_bytes(std::move(bytes), where);
  const auto found = file.metadata().find("kvproof");
  if (found == file.metadata().end() || file.metadata().size() != 1)
    throw DataError({where, fmt::format("__metadata__ has {} keys", file.metadata().size()), "exactly one, \"kvproof\"", ""});
  std::string document = found->second;
  return {std::move(document), std::move(file)};
}

std::string printed_hint(std::span<const std::byte> bytes) {
  constexpr std::size_t kShown = 40;
  std::string text;
  for (const std::byte byte : bytes.first(std::min(bytes.size(), kShown))) {
    const char c = static_cast<char>(byte);
    if (c == '\n' || c == '\r') break;
    if (c < ' ' || c > '~') return "";
    text += c;
  }
  return text.empty() ? "" : fmt::format("It begins with the text \"{}\": does something print to standard output?", text);
}

void MessageFrame::add(std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  if (!data_start_ && bytes_.size() >= kLengthBytes) read_length();
  if (data_start_ && !total_ && bytes_.size() >= *data_start_) read_header();
}

void MessageFrame::read_length() {
  std::uint64_t length = 0;
  std::memcpy(&length, bytes_.data(), kLengthBytes);
  if (length > kLongestHeader || length > most_bytes_)
    throw DataError({where_, fmt::format("a header of {} bytes", length), fmt::format("at most {}", std::min(kLongestHeader, most_bytes_)), printed_hint(bytes_)});
  data_start_ = kLengthBytes + length;
}

void MessageFrame::read_header() {
  const auto* text = reinterpret_cast<const char*>(bytes_.data()) + kLengthBytes;
  std::size_t end = 0;
  for (const HeaderEntry& entry : parse_header({text, *data_start_ - kLengthBytes}, where_).entries) end = std::max(end, entry.end);
  if (end > most_bytes_ || *data_start_ > most_bytes_ - end)
    throw DataError({where_, fmt::format("a message of {} header and {} data bytes", *data_start_, end), fmt::format("at most {} in all", most_bytes_), ""});
  total_ = *data_start_ + end;
}

std::vector<std::byte> MessageFrame::take() {
  const auto end = bytes_.begin() + static_cast<std::ptrdiff_t>(total_.value());
  std::vector<std::byte> rest(end, bytes_.end());
  bytes_.erase(end, bytes_.end());
  std::vector<std::byte> message = std::move(bytes_);
  bytes_.clear();
  data_start_ = total_ = std::nullopt;
  if (!rest.empty()) add(rest);
  return message;
}

}  // namespace kvproof::harness
