#pragma once
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace kvproof {

/// Where a text stops being UTF-8 (overlong forms, surrogates and NUL bytes count as broken), or nothing if it never does.
[[nodiscard]] std::optional<std::size_t> first_broken_utf8(std::string_view text) noexcept;

/// `text`, cut after at most `most` bytes and never inside a character, with … where something is missing.
[[nodiscard]] std::string cut(std::string_view text, std::size_t most);

/// A name from a file as a message can show it: in double quotes, control bytes escaped, cut after 80 bytes.
[[nodiscard]] std::string shown(std::string_view name);

/// The words of a JSON library's error without its own prefix and position; ours stand in front of them.
[[nodiscard]] std::string json_reason(std::string_view what);

/// Reads a text and leaves in `*consumed` how many bytes were taken: the JSON parser's events carry no position of their own.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, std::size_t* consumed) noexcept : at_(at), consumed_(consumed) {}
  reference operator*() const noexcept { return *at_; }
  CountingIterator& operator++() noexcept {
    ++at_;
    ++*consumed_;
    return *this;
  }
  CountingIterator operator++(int) noexcept {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const noexcept { return at_ == other.at_; }

 private:
  const char* at_;
  std::size_t* consumed_;
};

}  // namespace kvproof
