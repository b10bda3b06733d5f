#include "harness/report/python_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

namespace kvproof::harness {
namespace {

using Json = nlohmann::ordered_json;

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

std::string literal(const Json& json, std::size_t indent) {
  if (json.is_string()) return python_string(json.get<std::string>());
  if (json.is_boolean()) return json.get<bool>() ? "True" : "False";
  if (json.is_null()) return "None";
  if (!json.is_structured()) return json.dump();
  std::string text(1, json.is_array() ? '[' : '{');
  const std::string blanks(indent, ' ');
  const char* separator = "";
  for (const auto& item : json.items()) {
    text += separator;
    if (json.is_object()) text += fmt::format("{}{}{}: ", indent != 0 ? "\n" : "", blanks, python_string(item.key()));
    text += literal(item.value(), 0);
    separator = json.is_object() && indent != 0 ? "," : ", ";
  }
  if (json.is_object() && indent != 0 && !json.empty()) text += ",\n";
  return text + (json.is_array() ? ']' : '}');
}

}  // namespace

std::string python_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += fmt::format("\\{}", c);
    else if (byte < 0x20 || byte > 0x7E) out += fmt::format("\\x{:02x}", byte);
    else out += c;
  }
  return out + "\"";
}

std::string python_list(const std::vector<std::int64_t>& row) { return fmt::format("[{}]", fmt::join(row, ", ")); }

std::string python_rows(const Rows& rows) {
  std::vector<std::string> texts;
  for (const auto& row : rows) texts.push_back(python_list(row));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

std::string python_literal(const std::string& json, std::size_t indent) { return literal(Json::parse(json), indent); }

std::string python_words(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F || c == '\\') out += ' ';
    else out += c == '"' ? '\'' : c;
  }
  return out;
}

std::string python_name(std::string_view prefix, std::string_view name) {
  std::string out(prefix);
  for (const char c : name) {
    if (is_word(c)) out += c;
    else out += c == '_' ? std::string("__") : fmt::format("_{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace kvproof::harness
