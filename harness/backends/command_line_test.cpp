#include "harness/backends/command_line.hpp"

#include <boost/test/unit_test.hpp>

#include "engine/base/error.hpp"

namespace {

using kvproof::harness::split_command;
using Words = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(command_line)

BOOST_AUTO_TEST_CASE(words_are_split_as_a_shell_splits_them) {
  const std::pair<const char*, Words> cases[] = {
      {"python3 serve.py --model x", {"python3", "serve.py", "--model", "x"}},
      {"  a \t b\n", {"a", "b"}},
      {"sh -c 'echo \"a b\" > /dev/null'", {"sh", "-c", "echo \"a b\" > /dev/null"}},
      {"\"my engine\"/run", {"my engine/run"}},
      {"a\\ b 'c'\"d\"e", {"a b", "cde"}},
      {"x '' \"\"", {"x", "", ""}},
      {"\"\\\"quoted\\\" and \\$HOME and \\n\"", {"\"quoted\" and $HOME and \\n"}},
      {"$HOME *", {"$HOME", "*"}},
  };
  for (const auto& [text, words] : cases) BOOST_TEST(split_command(text) == words, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_a_shell_would_wait_for_is_an_error) {
  for (const char* text : {"", "   ", "a 'b", "a \"b", "a \\", "\"a\\\""}) BOOST_CHECK_THROW((void)split_command(text), kvproof::Error);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
