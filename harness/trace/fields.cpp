#include "harness/trace/fields.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/error.hpp"
#include "engine/safetensors/text.hpp"

namespace kvproof::harness {
namespace {

/// A value as it stands in the file, cut to a readable length.
std::string shown(const nlohmann::json& value) {
  constexpr std::size_t kLongest = 60;
  return cut(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), kLongest);
}

/// True for an integer that fits std::int64_t; 1.0 is not one.
bool is_integer(const nlohmann::json& value) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>() <= std::uint64_t{INT64_MAX};
  return value.is_number_integer();
}

bool is_row(const nlohmann::json& value) { return value.is_array() && std::all_of(value.begin(), value.end(), is_integer); }

}  // namespace

Fields::Fields(const nlohmann::json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object.is_object()) throw DataError({where_, "found " + shown(object), "a JSON object", ""});
}

bool Fields::has(const char* name) {
  asked_.insert(name);
  const auto found = object_.find(name);
  return found != object_.end() && !found->is_null();
}

const nlohmann::json& Fields::get(const char* name) {
  if (!has(name)) throw DataError({where_, fmt::format("field \"{}\" is missing", name), "", ""});
  return object_.at(name);
}

void Fields::fail(const std::string& field, const nlohmann::json& found, const char* expected) const {
  throw DataError({where_, fmt::format("field \"{}\" is {}", field, shown(found)), expected, ""});
}

std::string Fields::text(const char* name) {
  const auto& value = get(name);
  if (!value.is_string()) fail(name, value, "a string");
  return value.get<std::string>();
}

std::int64_t Fields::integer(const char* name) {
  const auto& value = get(name);
  if (!is_integer(value)) fail(name, value, "a 64-bit integer");
  return value.get<std::int64_t>();
}

std::uint64_t Fields::natural(const char* name) {
  const auto& value = get(name);
  const bool natural = value.is_number_unsigned() || (value.is_number_integer() && value.get<std::int64_t>() >= 0);
  if (!natural) fail(name, value, "an integer from 0 to 2^64 - 1");
  return value.get<std::uint64_t>();
}

bool Fields::flag(const char* name) {
  const auto& value = get(name);
  if (!value.is_boolean()) fail(name, value, "true or false");
  return value.get<bool>();
}

double Fields::number(const char* name) {
  const auto& value = get(name);
  if (!value.is_number()) fail(name, value, "a number");
  return value.get<double>();
}

std::vector<std::int64_t> Fields::integers(const char* name) {
  const auto& value = get(name);
  if (!is_row(value)) fail(name, value, "a list of 64-bit integers");
  return value.get<std::vector<std::int64_t>>();
}

Rows Fields::rows(const char* name) {
  const auto& value = get(name);
  if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_row)) fail(name, value, "a list of lists of 64-bit integers");
  return value.get<Rows>();
}

const nlohmann::json& Fields::object(const char* name) {
  const auto& value = get(name);
  if (!value.is_object()) fail(name, value, "a JSON object");
  return value;
}

const nlohmann::json& Fields::array(const char* name) {
  const auto& value = get(name);
  if (!value.is_array()) fail(name, value, "a JSON array");
  return value;
}

std::optional<std::string> Fields::maybe_text(const char* name) { return has(name) ? std::optional(text(name)) : std::nullopt; }

std::optional<std::int64_t> Fields::maybe_integer(const char* name) { return has(name) ? std::optional(integer(name)) : std::nullopt; }

std::optional<Rows> Fields::maybe_rows(const char* name) { return has(name) ? std::optional(rows(name)) : std::nullopt; }

void Fields::done() const {
  for (const auto& [name, value] : object_.items())
    if (!asked_.contains(name)) throw DataError({where_, fmt::format("unknown field {}", kvproof::shown(std::string_view(name))), "", "Is it misspelt?"});
}

}  // namespace kvproof::harness
