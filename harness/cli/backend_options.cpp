#include "harness/cli/backend_options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "harness/defects/catalogue.hpp"

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

constexpr std::string_view kFaultPrefix = "fault:";

/// The embedded engine with a known fault: to see what a failure looks like, and that a check finds it.
std::unique_ptr<Backend> faulty_engine(const std::string& name) {
  const KnownFault* fault = find_fault(name);
  if (fault == nullptr) {
    std::string names;
    for (const KnownFault& known : known_faults()) names += (names.empty() ? "" : ", ") + std::string(known.name);
    throw NoBackend({"--backend", fmt::format("\"{}{}\" names no fault", kFaultPrefix, name), "one of " + names, ""});
  }
  return make_engine_backend([fault] { return fault->make(std::make_shared<std::atomic<std::size_t>>(0)); });
}

}  // namespace

void add_backend_options(OptionTable& table, const char* standard, const char* restarts) {
  table.add_options()("backend", po::value<std::string>()->default_value(standard), "engine, oracle, fault:NAME, or exec:COMMAND")(
      "timeout", po::value<std::string>()->default_value("60"), "seconds for one whole reply of an exec: backend")(
      "max-restarts", po::value<std::string>()->default_value(restarts), "how often an exec: backend that broke down is started again");
}

std::unique_ptr<Backend> backend_from(const OptionValues& values) {
  BackendLimits limits;
  limits.timeout = parse_seconds(values["timeout"].as<std::string>());
  limits.max_restarts = parse_restarts(values["max-restarts"].as<std::string>());
  const auto& spec = values["backend"].as<std::string>();
  return spec.starts_with(kFaultPrefix) ? faulty_engine(spec.substr(kFaultPrefix.size())) : make_backend(spec, limits);
}

std::string backend_arguments(const OptionValues& values) {
  std::string text = " --backend " + quoted(values["backend"].as<std::string>());
  for (const char* name : {"timeout", "max-restarts"})
    if (!values[name].defaulted()) text += fmt::format(" --{} {}", name, quoted(values[name].as<std::string>()));
  return text;
}

}  // namespace kvproof::harness
