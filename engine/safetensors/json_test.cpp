#include "engine/safetensors/json.hpp"

#include <boost/test/unit_test.hpp>

#include <nlohmann/json.hpp>

#include "engine/safetensors/test_files.hpp"
#include "engine/safetensors/text.hpp"

namespace {

using kvproof::parse_json;

std::string refusal(std::string_view text) {
  return kvproof::test::message_of<kvproof::DataError>([&] { (void)parse_json(text, "a.json"); });
}

std::string nested(std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

BOOST_AUTO_TEST_SUITE(json)

BOOST_AUTO_TEST_CASE(values_come_through_unchanged) {
  const auto value = parse_json(R"( {"a": [1, -2, 3.5, true, null, "z\u00e4"], "b": {"a": 18446744073709551615}} )", "a.json");
  BOOST_TEST(value["a"].dump() == R"([1,-2,3.5,true,null,"zä"])");
  BOOST_TEST(value["b"]["a"].get<std::uint64_t>() == 18446744073709551615U);
}

BOOST_AUTO_TEST_CASE(a_key_twice_in_one_object_is_refused_where_it_stands) {
  BOOST_TEST(refusal(R"({"a": 1, "b": 2, "a": 3})") == R"(a.json @ byte 19: key "a" a second time in one object, expected each key once)");
}

BOOST_AUTO_TEST_CASE(a_key_twice_is_seen_through_escapes_and_deep_down) {
  BOOST_TEST(refusal(R"({"a": 1, "\u0061": 3})").find("a second time") != std::string::npos);
  BOOST_TEST(refusal(R"([{"x": {"a": 1, "a": 1}}])").find("a second time") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_same_key_in_two_objects_is_legal) { BOOST_TEST(parse_json(R"([{"a": {"a": 1}}, {"a": 2}])", "a.json").size() == 2U); }

BOOST_AUTO_TEST_CASE(sixty_four_levels_are_read_and_one_more_is_refused) {
  BOOST_TEST(parse_json(nested(64), "a.json").size() == 1U);
  BOOST_TEST(refusal(nested(65)) == "a.json @ byte 64: level 65 of nesting, expected at most 64");
}

BOOST_AUTO_TEST_CASE(a_million_levels_are_refused_without_harm) {
  BOOST_TEST(refusal(std::string(1'000'000, '[')).find("level 65") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(bytes_that_are_not_utf8_are_refused) {
  for (const std::string broken : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80"})
    BOOST_TEST(refusal(fmt::format("[\"{}\"]", broken)).find("a.json @ byte 2: byte 0x") == 0U);
}

BOOST_AUTO_TEST_CASE(a_nul_byte_does_not_end_the_text) {
  BOOST_TEST(refusal(std::string_view("{}\0{}", 5)) == "a.json @ byte 2: byte 0x00 is not UTF-8 text, expected JSON in UTF-8");
}

BOOST_AUTO_TEST_CASE(what_is_not_one_json_text_is_refused_with_the_byte) {
  for (const char* text : {"", " ", "{", "[1,]", "{} {}", "{}x", "{'a': 1}", "// c\n1", "[NaN]", "[1e999]", "[01]", "[\"\\ud800\"]", "[\"\t\"]"})
    BOOST_TEST(refusal(text).find("a.json @ byte ") == 0U, text << " gives " << refusal(text));
  BOOST_TEST(refusal("[1, x]").find("a.json @ byte 4: ") == 0U);
}

BOOST_AUTO_TEST_CASE(a_byte_order_mark_is_refused) { BOOST_TEST(refusal("\xef\xbb\xbf{}").find("byte order mark") != std::string::npos); }

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(text)

BOOST_AUTO_TEST_CASE(well_formed_text_of_every_length_passes) {
  BOOST_TEST(!kvproof::first_broken_utf8("a\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf").has_value());
}

BOOST_AUTO_TEST_CASE(a_long_name_is_cut_between_characters) {
  const std::string name = std::string(79, 'x') + "ä";
  BOOST_TEST(kvproof::shown(name) == fmt::format("\"{}…\"", std::string(79, 'x')));
  BOOST_TEST(kvproof::shown("a\nb") == "\"a\\x0ab\"");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
