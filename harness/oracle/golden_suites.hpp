#pragma once
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/oracle/expectation.hpp"
#include "harness/trace/golden_file.hpp"

// For the tests of this room only.

namespace kvproof::harness {

/// A golden of golden/ beside the oracle of its model.
struct Suite {
  GoldenFile golden;
  std::shared_ptr<const Oracle> oracle;
  [[nodiscard]] bool in_double() const { return golden.producer.find("\"compute\":\"float64\"") != std::string::npos; }
};

inline std::vector<Suite> read_suites() {
  std::map<std::filesystem::path, std::shared_ptr<const Oracle>> oracles;
  std::vector<Suite> suites;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(KVPROOF_SOURCE_DIR "/golden")) {
    if (!entry.path().string().ends_with(".golden.safetensors")) continue;
    auto& oracle = oracles[entry.path().parent_path()];
    if (oracle == nullptr) oracle = Oracle::open(entry.path().parent_path());
    suites.push_back({read_golden(entry.path()), oracle});
  }
  return suites;
}

/// All goldens of the project, read once.
inline const std::vector<Suite>& all_suites() {
  static const std::vector<Suite> kSuites = read_suites();
  return kSuites;
}

/// Differences of the rows that count, in plain numbers and in units of atol + rtol * |want|. NaN is infinitely far.
struct Distance {
  std::size_t rows = 0;
  double absolute = 0, in_bounds = 0;

  void add(double want, double got, double atol, double rtol) {
    const double difference = std::abs(got - want), units = difference / (atol + rtol * std::abs(want));
    if (!(difference <= absolute)) absolute = std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
    if (!(units <= in_bounds)) in_bounds = std::isnan(units) ? std::numeric_limits<double>::infinity() : units;
  }
  void add(const Distance& other) {
    rows += other.rows;
    absolute = std::max(absolute, other.absolute);
    in_bounds = std::max(in_bounds, other.in_bounds);
  }
};

/// Compares [B, T, V] or [B, H, S, D] where compared [B, T or S] says so.
inline Distance distance(const Tensor& want, const Tensor& got, const std::vector<std::uint8_t>& compared, const GoldenFile& golden) {
  Distance found;
  const std::size_t heads = want.shape.size() == 4 ? want.shape[1] : 1, columns = want.shape[want.shape.size() - 2], width = want.shape.back();
  for (const std::uint8_t flag : compared) found.rows += flag;
  for (std::size_t i = 0; i < want.values.size(); ++i) {
    const std::size_t row = i / width / columns / heads, column = i / width % columns;
    if (compared[row * columns + column] != 0) found.add(want.values[i], got.values[i], golden.atol, golden.rtol);
  }
  return found;
}

}  // namespace kvproof::harness
