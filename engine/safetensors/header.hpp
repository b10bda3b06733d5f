#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/safetensors/dtype.hpp"

namespace kvproof {

/// Bytes of the length word before the header, and the longest header the format allows.
inline constexpr std::size_t kLengthBytes = 8;
inline constexpr std::size_t kLongestHeader = 100'000'000;

/// One entry of a header. [begin, end) counts from the first data byte.
struct HeaderEntry {
  std::string name;
  Dtype dtype{};
  std::vector<std::size_t> shape;
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t at = 0;  ///< byte of the file where the entry's name ends, for messages
};

struct Header {
  std::vector<HeaderEntry> entries;  ///< in the header's order
  std::map<std::string, std::string> metadata;
};

/// Refuses by a rule of docs/safetensors.md: `where` @ byte `at`: found, expected. Rule STnn.
[[noreturn]] void refuse_file(const std::string& where, std::size_t at, const char* rule, std::string found, std::string expected);

/// Parses a header's JSON, which stands at byte 8 of the file: rules ST04 to ST12, ST14 and ST19.
[[nodiscard]] Header parse_header(std::string_view text, const std::string& where);

}  // namespace kvproof
