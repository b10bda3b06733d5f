#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/base/rows.hpp"

namespace kvproof::harness {

/// The calls of the contract as plain data. Values are wide and kinds are strings, so that every wrong call can be said.
struct NewCache {
  std::string cache;
  std::string kind;
  std::optional<std::int64_t> capacity, window;
  std::optional<std::string> model;
  bool operator==(const NewCache&) const = default;
};

struct Forward {
  std::optional<std::string> cache;  ///< absent: a plain full pass
  Rows input_ids;
  std::optional<Rows> attention_mask, position_ids;
  bool use_cache = true;
  std::string logits = "all";
  std::optional<std::string> model;
  bool operator==(const Forward&) const = default;
};

struct Clone {
  std::string cache, from;
  bool operator==(const Clone&) const = default;
};

struct Crop {
  std::string cache;
  std::int64_t length = 0;
  bool operator==(const Crop&) const = default;
};

struct Gather {
  std::string cache;
  std::vector<std::int64_t> rows;
  bool operator==(const Gather&) const = default;
};

struct Reset {
  std::string cache;
  bool operator==(const Reset&) const = default;
};

struct Drop {
  std::string cache;
  bool operator==(const Drop&) const = default;
};

struct Length {
  std::string cache;
  bool operator==(const Length&) const = default;
};

struct Read {
  std::string cache;
  std::int64_t layer = 0;
  bool operator==(const Read&) const = default;
};

struct Save {
  std::string cache, to;
  bool operator==(const Save&) const = default;
};

struct Load {
  std::string cache, from;
  bool operator==(const Load&) const = default;
};

struct Generate {
  std::optional<std::string> kind;  ///< absent: no cache
  std::optional<std::int64_t> capacity, window;
  Rows input_ids;
  std::optional<Rows> attention_mask;
  std::int64_t max_new_tokens = 0;
  std::optional<std::int64_t> eos_token_id;
  std::optional<std::string> model;
  bool operator==(const Generate&) const = default;
};

using Call = std::variant<NewCache, Forward, Clone, Crop, Gather, Reset, Drop, Length, Read, Save, Load, Generate>;

/// The op's name in traces and messages: "new", "forward", …
[[nodiscard]] std::string_view op_name(const Call& call) noexcept;

/// The cache a call speaks of (of clone and load: the one it makes); nothing for `generate` and a forward without cache.
[[nodiscard]] std::optional<std::string_view> cache_of(const Call& call) noexcept;

}  // namespace kvproof::harness
