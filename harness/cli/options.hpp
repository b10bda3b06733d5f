#pragma once
#include <boost/program_options.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/error.hpp"
#include "harness/verdict/tolerance.hpp"

namespace kvproof::harness {

/// A command line that cannot be understood: exit code 64.
class UsageError : public Error {
 public:
  using Error::Error;
};

using Arguments = std::vector<std::string>;
using OptionTable = boost::program_options::options_description;
using OptionValues = boost::program_options::variables_map;

/// One word of the command with its own options: `kvproof golden verify`.
struct Verb {
  std::string name;         ///< as typed, "golden verify"
  std::string positional;   ///< name of the option that takes the words without a dash; empty = none allowed
  std::string synopsis;     ///< shown by --help
};

/// Parses strictly: no abbreviations, no unknown options. `--help` prints and returns nothing.
///
/// Errors    UsageError.
[[nodiscard]] std::optional<OptionValues> parse_options(const Verb& verb, OptionTable table, const Arguments& arguments);

/// Adds --atol, --rtol and --tolerance, and reads them back over what a file or the default says.
void add_tolerance_options(OptionTable& table);
[[nodiscard]] Tolerance tolerance_from(const OptionValues& values, Tolerance base);

/// The command line's part of a replay command: " --atol 1e-09", or nothing.
[[nodiscard]] std::string tolerance_arguments(const OptionValues& values);

/// `--report text|jsonl`.
void add_report_option(OptionTable& table);
[[nodiscard]] bool wants_jsonl(const OptionValues& values);

/// A whole decimal number that fits. Errors: UsageError naming `what`.
[[nodiscard]] std::int64_t parse_integer(const std::string& text, const std::string& what);
/// A seed: all 64 bits, no sign. Errors: UsageError naming `what`.
[[nodiscard]] std::uint64_t parse_seed(const std::string& text, const std::string& what);
/// "4,9,6"
[[nodiscard]] std::vector<std::int64_t> parse_integers(const std::string& text, const std::string& what);

/// A word as a shell needs it.
[[nodiscard]] std::string quoted(const std::string& word);

}  // namespace kvproof::harness
