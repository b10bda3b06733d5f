#include "harness/cli/options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <iostream>

namespace kvproof::harness {
namespace {

namespace po = boost::program_options;

UsageError usage(const std::string& where, const std::string& found, const std::string& expected) {
  return UsageError({where, found, expected, fmt::format("Try {} --help", where)});
}

double parse_bound(const std::string& text, const std::string& what) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) || !(value >= 0))
    throw usage("kvproof", fmt::format("{} is \"{}\"", what, text), "a number >= 0");
  return value;
}

template <typename Whole>
Whole parse_whole(const std::string& text, const std::string& what, const char* expected) {
  Whole value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) throw usage("kvproof", fmt::format("{} is \"{}\"", what, text), expected);
  return value;
}

}  // namespace

std::optional<OptionValues> parse_options(const Verb& verb, OptionTable table, const Arguments& arguments) {
  table.add_options()("help,h", "show this text");
  OptionTable all(table);
  po::positional_options_description positional;
  if (!verb.positional.empty()) {
    all.add_options()(verb.positional.c_str(), po::value<std::vector<std::string>>());
    positional.add(verb.positional.c_str(), -1);
  }
  OptionValues values;
  try {
    const auto style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(arguments).options(all).positional(positional).style(style).run(), values);
    if (values.count("help") == 0) po::notify(values);  // whoever asks for help need not give what is required
  } catch (const po::error& error) {
    throw usage("kvproof " + verb.name, error.what(), "");
  }
  if (values.count("help") == 0) return values;
  std::cout << "usage: kvproof " << verb.name << ' ' << verb.synopsis << "\n\n" << table;
  return std::nullopt;
}

void add_tolerance_options(OptionTable& table) {
  table.add_options()("atol", po::value<std::string>(), "absolute part of the bound (default: the file's, else 1e-5)")(
      "rtol", po::value<std::string>(), "relative part of the bound (default: the file's, else 1e-4)")(
      "tolerance", po::value<std::string>(), "derived: add 8 x the fp32 noise of the oracle's own loops");
}

Tolerance tolerance_from(const OptionValues& values, Tolerance base) {
  if (values.count("atol") != 0) base.atol = parse_bound(values["atol"].as<std::string>(), "--atol");
  if (values.count("rtol") != 0) base.rtol = parse_bound(values["rtol"].as<std::string>(), "--rtol");
  if (values.count("tolerance") != 0) {
    const auto& word = values["tolerance"].as<std::string>();
    if (word != "derived") throw usage("kvproof", fmt::format("--tolerance is \"{}\"", word), "derived");
    base.derived = true;
  }
  if (values.count("atol") + values.count("rtol") + values.count("tolerance") != 0) base.source = "command line";
  return base;
}

std::string tolerance_arguments(const OptionValues& values) {
  std::string text;
  for (const char* name : {"atol", "rtol", "tolerance"})
    if (values.count(name) != 0) text += fmt::format(" --{} {}", name, quoted(values[name].as<std::string>()));
  return text;
}

void add_report_option(OptionTable& table) {
  table.add_options()("report", po::value<std::string>()->default_value("text"), "text or jsonl");
}

bool wants_jsonl(const OptionValues& values) {
  const auto& word = values["report"].as<std::string>();
  if (word != "text" && word != "jsonl") throw usage("kvproof", fmt::format("--report is \"{}\"", word), "text or jsonl");
  return word == "jsonl";
}

std::int64_t parse_integer(const std::string& text, const std::string& what) { return parse_whole<std::int64_t>(text, what, "a whole number"); }

std::uint64_t parse_seed(const std::string& text, const std::string& what) {
  return parse_whole<std::uint64_t>(text, what, "a whole number from 0 to 18446744073709551615");
}

std::vector<std::int64_t> parse_integers(const std::string& text, const std::string& what) {
  std::vector<std::int64_t> values;
  for (std::size_t start = 0;;) {
    const std::size_t comma = text.find(',', start);
    values.push_back(parse_integer(text.substr(start, comma - start), what));
    if (comma == std::string::npos) return values;
    start = comma + 1;
  }
}

std::string quoted(const std::string& word) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,=+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace kvproof::harness
