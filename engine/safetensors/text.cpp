#include "engine/safetensors/text.hpp"

#include <fmt/format.h>

namespace kvproof {
namespace {

// How long the sequence is that starts with `lead`, and the smallest code point that may be written that long (0 = no lead byte).
struct Lead {
  std::size_t length;
  unsigned first_bits;
  unsigned smallest;
};

Lead lead_of(unsigned char byte) noexcept {
  if (byte != 0 && byte < 0x80) return {1, byte, 0};
  if ((byte & 0xe0U) == 0xc0) return {2, byte & 0x1fU, 0x80};
  if ((byte & 0xf0U) == 0xe0) return {3, byte & 0x0fU, 0x800};
  if ((byte & 0xf8U) == 0xf0) return {4, byte & 0x07U, 0x10000};
  return {0, 0, 0};
}

// The length of the well-formed sequence at the front of `text`, or 0.
std::size_t sequence_length(std::string_view text) noexcept {
  const Lead lead = lead_of(static_cast<unsigned char>(text[0]));
  if (lead.length == 0 || lead.length > text.size()) return 0;
  unsigned point = lead.first_bits;
  for (std::size_t i = 1; i < lead.length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0U) != 0x80) return 0;
    point = (point << 6U) | (byte & 0x3fU);
  }
  const bool surrogate = point >= 0xd800 && point <= 0xdfff;
  return point < lead.smallest || point > 0x10ffff || surrogate ? 0 : lead.length;
}

}  // namespace

std::optional<std::size_t> first_broken_utf8(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

std::string cut(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0U) == 0x80) --most;
  return fmt::format("{}…", text.substr(0, most));
}

std::string shown(std::string_view name) {
  constexpr std::size_t kLongest = 80;
  std::string text = "\"";
  for (const char c : cut(name, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      text += fmt::format("\\x{:02x}", byte);
    else
      text += c;
  }
  text += '"';
  return text;
}

std::string json_reason(std::string_view what) {
  constexpr std::size_t kLongest = 200;
  if (const auto dash = what.find(" - "); dash != std::string_view::npos)
    what.remove_prefix(dash + 3);
  else if (const auto bracket = what.find("] "); bracket != std::string_view::npos)
    what.remove_prefix(bracket + 2);
  return cut(what, kLongest);
}

}  // namespace kvproof
