#include "engine/safetensors/json.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "engine/base/error.hpp"
#include "engine/safetensors/text.hpp"

namespace kvproof {
namespace {

constexpr std::size_t kDeepest = 64;

[[noreturn]] void refuse(const std::string& where, std::size_t byte, std::string found, std::string expected) {
  throw DataError({fmt::format("{} @ byte {}", where, byte), std::move(found), std::move(expected), ""});
}

void require_text(std::string_view text, const std::string& where) {
  if (const auto at = first_broken_utf8(text))
    refuse(where, *at, fmt::format("byte 0x{:02x} is not UTF-8 text", static_cast<unsigned char>(text[*at])), "JSON in UTF-8");
  if (text.starts_with("\xef\xbb\xbf")) refuse(where, 0, "a byte order mark", "JSON without one");
}

// Keeps the keys of every object that is open, so that a second one of the same name is seen where it stands.
class KeyWatch {
 public:
  KeyWatch(const std::string& where, const std::size_t& consumed) : where_(where), consumed_(consumed) {}

  void watch(nlohmann::json::parse_event_t event, const nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) open();
    if (event == Event::object_end || event == Event::array_end) keys_.pop_back();
    if (event == Event::key) add(parsed.get_ref<const std::string&>());
  }

 private:
  void open() {
    if (keys_.size() == kDeepest)
      refuse(where_, consumed_ - 1, fmt::format("level {} of nesting", kDeepest + 1), fmt::format("at most {}", kDeepest));
    keys_.emplace_back();
  }
  void add(const std::string& key) {
    if (!keys_.back().insert(key).second)
      refuse(where_, consumed_ - 1, fmt::format("key {} a second time in one object", shown(key)), "each key once");
  }

  const std::string& where_;
  const std::size_t& consumed_;
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& where) {
  require_text(text, where);
  std::size_t consumed = 0;
  KeyWatch keys(where, consumed);
  const auto watch = [&keys](int /*depth*/, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    keys.watch(event, parsed);
    return true;
  };
  std::size_t ignored = 0;
  try {
    return nlohmann::json::parse(CountingIterator(text.data(), &consumed), CountingIterator(text.data() + text.size(), &ignored), watch);
  } catch (const nlohmann::json::exception& broken) {
    refuse(where, consumed == 0 ? 0 : consumed - 1, json_reason(broken.what()), "one JSON text");
  }
}

}  // namespace kvproof
