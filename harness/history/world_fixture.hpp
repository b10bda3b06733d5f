#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "harness/history/world.hpp"

// For the tests of this room only.

namespace kvproof::harness {

[[nodiscard]] const std::map<std::string, ModelFacts>& two_models();

/// Everything a cache stands for, in words: equal texts = equal caches, down to what each column could see.
[[nodiscard]] std::string described(const CacheState& cache);
[[nodiscard]] std::string described(const World& world);

/// Which of the columns 0..q column q sees: "0110".
[[nodiscard]] std::string seen(const RowHistory& row, std::size_t q);
[[nodiscard]] std::vector<std::int64_t> positions(const RowHistory& row);
[[nodiscard]] std::vector<std::int64_t> tokens(const RowHistory& row);

/// A world that checks after every refusal that nothing has changed.
struct Watched {
  World world{two_models()};

  /// The code a call is refused with; none = it was carried out.
  std::optional<Code> code(const Call& call);
  /// Carries out a call that must be accepted.
  Outcome play(const Call& call);
  [[nodiscard]] const CacheState& cache(const std::string& name) const;
};

[[nodiscard]] Call new_cache(std::string name, std::string kind = "dynamic", std::optional<std::int64_t> capacity = std::nullopt,
                             std::optional<std::int64_t> window = std::nullopt, std::optional<std::string> model = std::nullopt);
[[nodiscard]] Forward feed(std::optional<std::string> cache, Rows ids, std::optional<Rows> mask = std::nullopt,
                           std::optional<Rows> positions = std::nullopt);

/// Plays a call and checks the code it is refused with; none = it must be accepted. A failure names the line of the caller.
void check_code(Watched& watched, const Call& call, std::optional<Code> want, std::source_location at = std::source_location::current());
void check_list(const std::vector<std::int64_t>& found, const std::vector<std::int64_t>& want, std::source_location at = std::source_location::current());

}  // namespace kvproof::harness
