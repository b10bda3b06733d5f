#include <boost/test/unit_test.hpp>

#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "engine/safetensors/json.hpp"
#include "engine/weights/config.hpp"
#include "harness/laws/law.hpp"
#include "harness/oracle/expectation.hpp"
#include "harness/trace/step_json.hpp"
#include "harness/trace/trace_file.hpp"

// What the pages of docs/ show must be true: every JSON block is read as what it is marked as and played against the contract,
// and the tables of the contract are those of the code.

namespace {

using namespace kvproof::harness;

std::string page(const std::string& name) { return read_text_file(std::string(KVPROOF_SOURCE_DIR) + "/docs/" + name); }

/// A fenced block: its mark ("json steps") and its text.
struct Block {
  std::string mark, text, where;
};

std::vector<Block> json_blocks(const std::string& name) {
  std::istringstream lines(page(name));
  std::vector<Block> blocks;
  bool inside = false;
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) blocks.push_back({line.substr(3), "", name + ":" + std::to_string(number)});
    } else if (inside) {
      blocks.back().text += line + "\n";
    }
  }
  std::erase_if(blocks, [](const Block& block) { return !block.mark.starts_with("json"); });
  return blocks;
}

const ModelFacts kFacts{.vocab_size = 32, .n_positions = 32, .n_layer = 2, .n_head = 2, .head_dim = 16};

/// Plays steps one a line; one without `error` must be accepted.
std::size_t play_steps(const Block& block) {
  std::istringstream lines(block.text);
  Trace trace;
  for (std::string line; std::getline(lines, line);) trace.push_back(step_from_json(kvproof::parse_json(line, block.where), block.where));
  return outcomes_of(trace, {{"main", kFacts}}, block.where, true).size();
}

std::size_t play_trace_file(const Block& block) {
  const TraceFile file = parse_trace_file(block.text, block.where);
  std::map<std::string, ModelFacts> facts;
  for (const auto& [name, model] : file.models) {
    facts[name] = kFacts;
    if (model.generated()) (void)kvproof::parse_config(kvproof::parse_json(model.config, block.where), block.where);
  }
  BOOST_TEST((parse_trace_file(format_trace_file(file), "again") == file));
  return outcomes_of(file.trace, facts, block.where, true).size();
}

std::size_t play_golden_document(const Block& block) {
  const auto document = kvproof::parse_json(block.text, block.where);
  (void)kvproof::parse_config(document.at("config"), block.where);
  return outcomes_of(trace_from_json(document.at("trace"), block.where), {{"main", kFacts}}, block.where, true).size();
}

/// The first column of every table row that starts with a code span, below `heading`.
std::vector<std::string> first_column(const std::string& text, const std::string& heading) {
  const std::size_t start = text.find("\n## " + heading + "\n");
  BOOST_REQUIRE_MESSAGE(start != std::string::npos, heading);
  std::istringstream lines(text.substr(start + 4, text.find("\n## ", start + 4) - start - 4));
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("| `")) names.push_back(line.substr(3, line.find('`', 3) - 3));
  return names;
}

BOOST_AUTO_TEST_SUITE(docs_examples)

BOOST_AUTO_TEST_CASE(every_json_block_is_what_it_is_marked_as_and_obeys_the_contract) {
  std::size_t steps = 0, blocks = 0;
  for (const char* name : {"contract.md", "trace_format.md", "golden_format.md", "tolerances.md", "hand_worked_model.md"})
    for (const Block& block : json_blocks(name)) {
      ++blocks;
      if (block.mark == "json steps") steps += play_steps(block);
      else if (block.mark == "json trace") steps += play_trace_file(block);
      else if (block.mark == "json golden") steps += play_golden_document(block);
      else BOOST_ERROR(block.where << ": a block marked \"" << block.mark << "\" is read by no test");
    }
  BOOST_TEST(blocks >= 6U);
  BOOST_TEST(steps >= 40U);
}

BOOST_AUTO_TEST_CASE(the_table_of_refusals_is_the_codes_in_their_order) {
  const auto names = first_column(page("contract.md"), "Refusals");
  BOOST_REQUIRE(names.size() == kCodeCount);
  for (std::size_t i = 0; i < kCodeCount; ++i) BOOST_TEST(names[i] == code_name(static_cast<Code>(i)));
}

BOOST_AUTO_TEST_CASE(the_table_of_calls_is_the_ops) {
  const auto names = first_column(page("contract.md"), "Calls");
  const Call calls[] = {NewCache{}, Forward{}, Clone{}, Crop{}, Gather{}, Reset{}, Drop{}, Length{}, Read{}, Save{}, Load{}, Generate{}};
  BOOST_REQUIRE(names.size() == std::size(calls));
  for (std::size_t i = 0; i < names.size(); ++i) BOOST_TEST(names[i] == op_name(calls[i]));
}

BOOST_AUTO_TEST_CASE(the_table_of_laws_is_the_laws) {
  const auto names = first_column(page("contract.md"), "Laws");
  BOOST_REQUIRE(names.size() == laws().size());
  for (std::size_t i = 0; i < names.size(); ++i) BOOST_TEST(names[i] == laws()[i].id);
}

BOOST_AUTO_TEST_CASE(each_rule_of_the_formats_is_cited_by_a_test) {
  std::string tests;
  for (const char* name : {"trace/step_json_test.cpp", "trace/trace_file_test.cpp", "trace/golden_file_test.cpp", "history/row_history_test.cpp", "oracle/expectation_test.cpp"})
    tests += read_text_file(std::string(KVPROOF_SOURCE_DIR) + "/harness/" + name);
  std::size_t rules = 0;
  for (const char* name : {"trace_format.md", "golden_format.md"}) {
    const std::string text = page(name);
    const std::regex rule(R"(\n\| ((TR|GF)\d\d) \|)");
    for (std::sregex_iterator found(text.begin(), text.end(), rule), end; found != end; ++found, ++rules)
      BOOST_TEST(tests.find((*found)[1].str()) != std::string::npos, name << " " << (*found)[1].str());
  }
  BOOST_TEST(rules == 34U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
