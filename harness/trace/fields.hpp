#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "engine/base/rows.hpp"

namespace kvproof::harness {

/// Reads the fields of one JSON object by name and type, and knows which were asked for.
///
/// Errors    DataError `where: field "x" is …, expected …` for a missing field, a wrong type, or (in done()) an unknown field.
class Fields {
 public:
  Fields(const nlohmann::json& object, std::string where);

  [[nodiscard]] bool has(const char* name);  ///< present and not null
  [[nodiscard]] std::string text(const char* name);
  [[nodiscard]] std::int64_t integer(const char* name);
  [[nodiscard]] std::uint64_t natural(const char* name);  ///< 0 to 2^64 - 1
  [[nodiscard]] bool flag(const char* name);
  [[nodiscard]] double number(const char* name);
  [[nodiscard]] std::vector<std::int64_t> integers(const char* name);
  [[nodiscard]] Rows rows(const char* name);
  [[nodiscard]] const nlohmann::json& object(const char* name);
  [[nodiscard]] const nlohmann::json& array(const char* name);
  [[nodiscard]] std::optional<std::string> maybe_text(const char* name);
  [[nodiscard]] std::optional<std::int64_t> maybe_integer(const char* name);
  [[nodiscard]] std::optional<Rows> maybe_rows(const char* name);

  /// Refuses fields that nobody asked for: a typo must not change what is tested.
  void done() const;
  [[nodiscard]] const std::string& where() const noexcept { return where_; }

 private:
  const nlohmann::json& get(const char* name);
  [[noreturn]] void fail(const std::string& field, const nlohmann::json& found, const char* expected) const;

  const nlohmann::json& object_;
  std::string where_;
  std::set<std::string> asked_;
};

}  // namespace kvproof::harness
