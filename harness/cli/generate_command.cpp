#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>

#include "engine/session/session.hpp"
#include "harness/cli/commands.hpp"

namespace kvproof::harness {
namespace {

namespace po = boost::program_options;

std::optional<std::int64_t> maybe_integer(const OptionValues& values, const std::string& name) {
  if (values.count(name) == 0) return std::nullopt;
  return parse_integer(values[name].as<std::string>(), "--" + name);
}

std::optional<CacheOptions> cache_from(const OptionValues& values) {
  const auto capacity = maybe_integer(values, "capacity"), window = maybe_integer(values, "window");
  const std::string& name = values["cache"].as<std::string>();
  if (name == "dynamic") return CacheOptions{CacheKind::dynamic, capacity, window};
  if (name == "static") return CacheOptions{CacheKind::fixed, capacity, window};
  if (name == "static_sliding_window") return CacheOptions{CacheKind::sliding_window, capacity, window};
  if (name == "none" && !capacity && !window) return std::nullopt;
  throw UsageError({"kvproof generate", fmt::format("--cache is {}{}", name, capacity || window ? " with --capacity or --window" : ""),
                    "dynamic, static, static_sliding_window or none", "Try kvproof generate --help"});
}

/// Prompts of different lengths are padded on the left; the mask hides the pads.
void left_pad(const Rows& prompts, GenerateInput& input) {
  const std::size_t longest = std::ranges::max_element(prompts, {}, &std::vector<std::int64_t>::size)->size();
  input.attention_mask.emplace();
  for (const auto& prompt : prompts) {
    std::vector<std::int64_t> ids(longest - prompt.size(), 0), mask(longest - prompt.size(), 0);
    ids.insert(ids.end(), prompt.begin(), prompt.end());
    mask.resize(longest, 1);
    input.input_ids.push_back(std::move(ids));
    input.attention_mask->push_back(std::move(mask));
  }
}

}  // namespace

ExitCode run_generate(const Arguments& arguments) {
  OptionTable table("options");
  table.add_options()("model", po::value<std::string>()->required(), "model folder")(
      "ids", po::value<std::vector<std::string>>()->required(), "prompt token ids, 4,9,6; several times = a batch, padded on the left")(
      "max-new-tokens", po::value<std::string>()->required(), "how many ids to add at most")("eos", po::value<std::string>(), "id that ends a row")(
      "cache", po::value<std::string>()->default_value("dynamic"), "dynamic, static, static_sliding_window or none")(
      "capacity", po::value<std::string>(), "columns of a static cache")("window", po::value<std::string>(), "columns a sliding cache sees");
  const auto values = parse_options({"generate", "", "--model DIR --ids 4,9,6 --max-new-tokens N"}, table, arguments);
  if (!values) return kExpected;
  Rows prompts;
  for (const std::string& text : (*values)["ids"].as<std::vector<std::string>>()) prompts.push_back(parse_integers(text, "--ids"));
  GenerateInput input;
  input.cache = cache_from(*values);
  left_pad(prompts, input);
  input.max_new_tokens = parse_integer((*values)["max-new-tokens"].as<std::string>(), "--max-new-tokens");
  input.eos_token_id = maybe_integer(*values, "eos");
  try {
    for (const auto& row : Session::open((*values)["model"].as<std::string>()).generate(input)) std::cout << fmt::format("{}\n", fmt::join(row, ","));
  } catch (const Refused& refused) {
    throw UsageError({"kvproof generate", fmt::format("{} ({})", refused.what(), refusal_code_name(refused.code())), "", ""});
  }
  return kExpected;
}

}  // namespace kvproof::harness
