#include "harness/cli/backend_options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>

namespace kvproof::harness {
namespace {

namespace po = boost::program_options;

std::chrono::milliseconds parse_seconds(const std::string& text) {
  constexpr double kLeast = 0.001, kMost = 86'400;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= kLeast && value <= kMost))
    throw UsageError({"kvproof", fmt::format("--timeout is \"{}\"", text), fmt::format("seconds from {} to {:.0f}", kLeast, kMost), ""});
  return std::chrono::milliseconds(static_cast<std::int64_t>(value * 1000));
}

std::size_t parse_restarts(const std::string& text) {
  const std::int64_t value = parse_integer(text, "--max-restarts");
  if (value < 0) throw UsageError({"kvproof", fmt::format("--max-restarts is {}", value), "0 or more", ""});
  return static_cast<std::size_t>(value);
}

}  // namespace

void add_backend_options(OptionTable& table, const char* standard) {
  table.add_options()("backend", po::value<std::string>()->default_value(standard), "engine, oracle, or exec:COMMAND")(
      "timeout", po::value<std::string>()->default_value("60"), "seconds for one whole reply of an exec: backend")(
      "max-restarts", po::value<std::string>()->default_value("100"), "how often an exec: backend that broke down is started again");
}

std::unique_ptr<Backend> backend_from(const OptionValues& values) {
  BackendLimits limits;
  limits.timeout = parse_seconds(values["timeout"].as<std::string>());
  limits.max_restarts = parse_restarts(values["max-restarts"].as<std::string>());
  return make_backend(values["backend"].as<std::string>(), limits);
}

std::string backend_arguments(const OptionValues& values) {
  std::string text = " --backend " + quoted(values["backend"].as<std::string>());
  for (const char* name : {"timeout", "max-restarts"})
    if (!values[name].defaulted()) text += fmt::format(" --{} {}", name, quoted(values[name].as<std::string>()));
  return text;
}

}  // namespace kvproof::harness
