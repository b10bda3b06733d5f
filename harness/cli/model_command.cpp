#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "engine/safetensors/json.hpp"
#include "engine/weights/portable_model.hpp"
#include "engine/weights/weights.hpp"
#include "harness/cli/commands.hpp"
#include "harness/trace/trace_file.hpp"

namespace kvproof::harness {
namespace {

namespace po = boost::program_options;

/// The probe model's sizes: small enough for thousands of traces, large enough that every index bug shows.
nlohmann::json default_config() {
  return {{"model_type", "gpt2"}, {"activation_function", "gelu_new"}, {"layer_norm_epsilon", 1e-5}, {"n_embd", 20}, {"n_head", 5}, {"n_layer", 2},
          {"n_positions", 32}, {"vocab_size", 29}, {"initializer_range", 0.12}, {"tie_word_embeddings", true}};
}

nlohmann::json config_from(const OptionValues& values) {
  nlohmann::json config = default_config();
  if (values.count("config") != 0) {
    const auto& path = values["config"].as<std::string>();
    config = parse_json(read_text_file(path), path);
  }
  for (const char* name : {"n_embd", "n_head", "n_layer", "n_positions", "vocab_size"})
    if (values.count(name) != 0) config[name] = parse_integer(values[name].as<std::string>(), std::string("--") + name);
  return config;
}

ExitCode run_make(const Arguments& arguments) {
  OptionTable table("options");
  table.add_options()("seed", po::value<std::string>()->required(), "seed of the portable generator")("out", po::value<std::string>()->required(), "folder to write")(
      "config", po::value<std::string>(), "a config.json to start from (default: a small probe model)");
  for (const char* name : {"n_embd", "n_head", "n_layer", "n_positions", "vocab_size"}) table.add_options()(name, po::value<std::string>(), "over the config's");
  const auto values = parse_options({"model make", "", "--seed N --out DIR"}, table, arguments);
  if (!values) return kExpected;
  const std::string out = (*values)["out"].as<std::string>();
  write_portable_model(config_from(*values), parse_seed((*values)["seed"].as<std::string>(), "--seed"), out);
  std::cout << fmt::format("wrote {}: weights_sha256 {}\n", out, Weights::open(out).sha256());
  return kExpected;
}

ExitCode run_info(const Arguments& arguments) {
  const auto values = parse_options({"model info", "folder", "DIR"}, OptionTable("options"), arguments);
  if (!values) return kExpected;
  const auto folders = values->count("folder") != 0 ? (*values)["folder"].as<std::vector<std::string>>() : std::vector<std::string>{};
  if (folders.size() != 1) throw UsageError({"kvproof model info", fmt::format("{} folders are named", folders.size()), "one", "Try kvproof model info --help"});
  const Weights weights = Weights::open(folders.front());
  const Config& c = weights.config();
  std::cout << fmt::format("{}: gpt2, n_layer {}, n_head {}, n_embd {} (head_dim {}), n_inner {}, n_positions {}, vocab_size {}\n", folders.front(), c.n_layer,
                           c.n_head, c.n_embd, c.head_dim(), c.n_inner, c.n_positions, c.vocab_size);
  std::cout << fmt::format("lm_head {}, weights {}, weights_sha256 {}\n", c.tie_word_embeddings ? "tied" : "separate",
                           dtype_name(weights.tensor("wte.weight").dtype), weights.sha256());
  return kExpected;
}

}  // namespace

ExitCode run_model(const Arguments& arguments) {
  const std::string word = arguments.empty() ? "" : arguments[0];
  const Arguments rest(arguments.empty() ? arguments.end() : arguments.begin() + 1, arguments.end());
  if (word == "make") return run_make(rest);
  if (word == "info") return run_info(rest);
  if (word == "--help" || word == "-h") {
    std::cout << "usage: kvproof model make --seed N --out DIR | info DIR\n";
    return kExpected;
  }
  throw UsageError({"kvproof model", fmt::format("found \"{}\"", word), "make or info", "Try kvproof model --help"});
}

}  // namespace kvproof::harness
