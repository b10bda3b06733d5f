// One case for each rejection rule of docs/safetensors.md; its name starts with the rule's number.
#include <boost/test/unit_test.hpp>

#include <fmt/format.h>
#include <sys/stat.h>

#include <set>

#include "engine/safetensors/reader.hpp"
#include "engine/safetensors/test_files.hpp"

namespace {

using kvproof::SafetensorsFile;
using kvproof::test::file_of;
using kvproof::test::raw_file;

std::string refusal(const std::vector<std::byte>& file) {
  return kvproof::test::message_of<kvproof::DataError>([&] { (void)SafetensorsFile::from_bytes(file, "f"); });
}

void refuses(const std::vector<std::byte>& file, std::size_t byte, std::string_view found_and_expected, std::string_view rule) {
  const std::string expected = fmt::format("f @ byte {}: {}. Rule {} of docs/safetensors.md", byte, found_and_expected, rule);
  BOOST_TEST(refusal(file) == expected);
}

// The rule that refuses `file`, "" if none does.
std::string rule_of(const std::vector<std::byte>& file) {
  const std::string message = refusal(file);
  const auto at = message.find("Rule ST");
  return at == std::string::npos ? "" : message.substr(at + 5, 4);
}

std::string entry(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return fmt::format(R"({{"a":{{"dtype":{},"shape":{},"data_offsets":{}}}}})", dtype, shape, offsets);
}

std::string two(std::string_view first_offsets, std::string_view second_offsets) {
  return fmt::format(R"({{"a":{{"dtype":"U8","shape":[2],"data_offsets":{}}},"b":{{"dtype":"U8","shape":[2],"data_offsets":{}}}}})",
                     first_offsets, second_offsets);
}

BOOST_AUTO_TEST_SUITE(rules)

BOOST_AUTO_TEST_CASE(ST00_what_is_no_regular_file_is_refused_in_words) {
  const kvproof::test::ScratchFolder folder("st00");
  const auto open = [](const std::filesystem::path& path) {
    return kvproof::test::message_of([&] { (void)SafetensorsFile::open(path); });
  };
  const auto pipe = folder / "pipe";
  BOOST_REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  BOOST_TEST(open(folder / "none") == (folder / "none").string() + ": cannot be opened: No such file or directory");
  BOOST_TEST(open(folder.path()) == folder.path().string() + ": is a directory, expected a regular file");
  BOOST_TEST(open(pipe) == pipe.string() + ": is a pipe, expected a regular file");
  BOOST_TEST(open("/dev/null") == "/dev/null: is a device or a socket, expected a regular file");
}

BOOST_AUTO_TEST_CASE(ST01_a_file_without_room_for_the_length_is_refused) {
  refuses({}, 0, "a file of 0 bytes, expected 8 bytes of header length", "ST01");
  refuses(kvproof::test::bytes_of("1234567"), 0, "a file of 7 bytes, expected 8 bytes of header length", "ST01");
}

BOOST_AUTO_TEST_CASE(ST01_an_empty_file_on_disk_is_refused_the_same_way) {
  const kvproof::test::ScratchFolder folder("st01");
  kvproof::test::write_text(folder / "empty", "");
  const auto message = kvproof::test::message_of<kvproof::DataError>([&] { (void)SafetensorsFile::open(folder / "empty"); });
  BOOST_TEST(message.find("a file of 0 bytes") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(ST02_a_header_of_more_than_100_million_bytes_is_refused) {
  refuses(raw_file(100'000'001, "{}"), 0, "a header of 100000001 bytes, expected at most 100000000", "ST02");
  refuses(raw_file(~std::uint64_t{0}, "{}"), 0, "a header of 18446744073709551615 bytes, expected at most 100000000", "ST02");
}

BOOST_AUTO_TEST_CASE(ST03_a_header_that_passes_the_end_of_the_file_is_refused) {
  refuses(raw_file(3, "{}"), 0, "a header of 3 bytes in a file of 10, expected a header that ends in the file", "ST03");
}

BOOST_AUTO_TEST_CASE(ST04_a_header_that_is_no_object_is_refused) {
  refuses(file_of(""), 8, "an empty header, expected a JSON object", "ST04");
  refuses(file_of(" {}"), 8, "a header that does not start with {, expected a JSON object", "ST04");
  for (const char* header : {"[]", "null", "\"a\"", "1", "\xef\xbb\xbf{}"}) BOOST_TEST(rule_of(file_of(header)) == "ST04");
}

BOOST_AUTO_TEST_CASE(ST05_a_header_that_is_not_utf8_is_refused) {
  refuses(file_of("{\"\xff\":1}"), 10, "byte 0xff is not UTF-8 text, expected a header in UTF-8", "ST05");
  refuses(file_of(std::string_view("{}\0", 3)), 10, "byte 0x00 is not UTF-8 text, expected a header in UTF-8", "ST05");
}

BOOST_AUTO_TEST_CASE(ST06_a_header_that_is_not_json_is_refused) {
  for (const char* header : {"{", "{]", "{\"a\"", "{}{}", "{},", "{}x", "{\"a\":{\"dtype\":}}", "{\"__metadata__\":{\"a\":\"\\ud800\"}}",
                             "{\"__metadata__\":{\"a\":1e999}}"})
    BOOST_TEST(rule_of(file_of(header)) == "ST06", header << " gives " << refusal(file_of(header)));
  BOOST_TEST(refusal(file_of("{x}")).find("f @ byte 9: ") == 0U);
}

BOOST_AUTO_TEST_CASE(ST07_a_tensor_a_field_or_a_metadata_key_twice_is_refused) {
  const std::string one = R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  refuses(file_of(fmt::format("{{{0},{0}}}", one)), 8 + 1 + one.size() + 3, R"(the name "a" a second time, expected each name once)", "ST07");
  BOOST_TEST(rule_of(file_of(R"({"__metadata__":{},"__metadata__":{}})")) == "ST07");
  BOOST_TEST(rule_of(file_of(R"({"__metadata__":{"k":"1","k":"1"}})")) == "ST07");
  BOOST_TEST(rule_of(file_of(R"({"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})")) == "ST07");
  BOOST_TEST(rule_of(file_of(R"({"a":{"dtype":"U8","shape":[0],"sh\u0061pe":[0],"data_offsets":[0,0]}})")) == "ST07");
}

BOOST_AUTO_TEST_CASE(ST08_an_entry_must_have_its_three_fields_and_no_other) {
  refuses(file_of(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"device":"cpu"}})"), 67,
          R"(tensor "a" has the key "device", expected dtype, shape and data_offsets, nothing else)", "ST08");
  refuses(file_of(R"({"a":{"dtype":"U8","data_offsets":[0,0]}})"), 11, R"(tensor "a" has no shape, expected dtype, shape and data_offsets)", "ST08");
  refuses(file_of(R"({"a":7})"), 14, R"(tensor "a" is 7, expected an object with dtype, shape and data_offsets)", "ST08");
  for (const char* header : {R"({"a":{}})", R"({"a":{"shape":[0],"data_offsets":[0,0]}})", R"({"a":{"dtype":"U8","shape":[0]}})", R"({"a":[]})",
                             R"({"a":null})", R"({"a":"b"})", R"({"a":true})", R"({"a":-1})", R"({"a":1.5})"})
    BOOST_TEST(rule_of(file_of(header)) == "ST08", header);
}

BOOST_AUTO_TEST_CASE(ST09_an_unknown_dtype_is_refused) {
  refuses(file_of(entry(R"("F8_E4M3")", "[0]", "[0,0]")), 30,
          R"(tensor "a" has dtype "F8_E4M3", expected one of F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, BOOL)", "ST09");
  for (const char* dtype : {R"("f32")", R"("")", "32", "null", R"(["F32"])", R"({"F32":1})"})
    BOOST_TEST(rule_of(file_of(entry(dtype, "[0]", "[0,0]"))) == "ST09", dtype);
}

BOOST_AUTO_TEST_CASE(ST10_a_shape_is_a_list_of_whole_numbers_from_0_up) {
  refuses(file_of(entry(R"("U8")", "[-1]", "[0,0]")), 38,
          R"(tensor "a" has -1 in its shape, expected an array of whole numbers from 0 to 2^64 - 1)", "ST10");
  for (const char* shape : {"[18446744073709551616]", "[1.0]", "[1e2]", "[-0]", "[\"1\"]", "[null]", "[true]", "[[1]]", "[{}]", "4", "null", "{}"})
    BOOST_TEST(rule_of(file_of(entry(R"("U8")", shape, "[0,0]"))) == "ST10", shape);
}

BOOST_AUTO_TEST_CASE(ST10_a_shape_of_more_than_64_extents_is_refused) {
  std::string extents = "1";
  for (int i = 1; i < 64; ++i) extents += ",1";
  BOOST_TEST(rule_of(file_of(entry(R"("U8")", fmt::format("[{}]", extents), "[0,1]"), 1)) == "");
  BOOST_TEST(rule_of(file_of(entry(R"("U8")", fmt::format("[{},1]", extents), "[0,1]"), 1)) == "ST10");
}

BOOST_AUTO_TEST_CASE(ST11_a_shape_whose_product_overflows_is_refused) {
  refuses(file_of(entry(R"("U8")", "[4294967296,4294967296]", "[0,0]")), 11,
          R"(tensor "a" has shape [4294967296, 4294967296], expected a shape whose bytes 64 bits can count)", "ST11");
  BOOST_TEST(rule_of(file_of(entry(R"("F64")", "[2305843009213693952]", "[0,0]"))) == "ST11");  // 2^61 elements of 8 bytes are 2^64
}

BOOST_AUTO_TEST_CASE(ST12_data_offsets_are_a_begin_and_an_end) {
  refuses(file_of(entry(R"("U8")", "[0]", "[1,0]"), 1), 11, R"(tensor "a" has data_offsets [1, 0], expected a begin that is not behind its end)", "ST12");
  for (const char* offsets : {"[]", "[0]", "[0,0,0]", "[-1,0]", "[0,0.0]", "[0,18446744073709551616]", "[null,0]", "7", "null", "\"0\"", "{}"})
    BOOST_TEST(rule_of(file_of(entry(R"("U8")", "[0]", offsets))) == "ST12", offsets);
}

BOOST_AUTO_TEST_CASE(ST13_a_tensor_that_passes_the_end_of_the_file_is_refused) {
  refuses(file_of(entry(R"("U8")", "[3]", "[0,3]"), 2), 11, R"(tensor "a" ends at data byte 3, expected at most 2: the file ends there)", "ST13");
  BOOST_TEST(rule_of(file_of(entry(R"("U8")", "[9223372036854775807]", "[0,9223372036854775807]"), 2)) == "ST13");
}

BOOST_AUTO_TEST_CASE(ST14_a_byte_range_that_does_not_fit_shape_and_dtype_is_refused) {
  refuses(file_of(entry(R"("F32")", "[2,3]", "[0,20]"), 20), 11, R"(tensor "a" has 20 bytes of data, expected 24 for shape [2, 3] and dtype F32)", "ST14");
  BOOST_TEST(rule_of(file_of(entry(R"("F32")", "[]", "[0,0]"))) == "ST14");  // a scalar is one element
}

BOOST_AUTO_TEST_CASE(ST15_tensors_that_overlap_are_refused) {
  refuses(file_of(two("[0,2]", "[1,3]"), 3), 63, R"(tensor "b" overlaps another: it begins at data byte 1, expected 2)", "ST15");
  BOOST_TEST(rule_of(file_of(two("[0,2]", "[0,2]"), 2)) == "ST15");
}

BOOST_AUTO_TEST_CASE(ST16_a_hole_between_or_before_tensors_is_refused) {
  refuses(file_of(two("[0,2]", "[3,5]"), 5), 63, R"(tensor "b" leaves a hole: it begins at data byte 3, expected 2)", "ST16");
  BOOST_TEST(rule_of(file_of(two("[1,3]", "[3,5]"), 5)) == "ST16");
}

BOOST_AUTO_TEST_CASE(ST17_bytes_behind_the_last_tensor_are_refused) {
  const std::string header = two("[0,2]", "[2,4]");
  refuses(file_of(header, 5), 8 + header.size() + 4, "1 bytes behind the last tensor, expected the end of the file", "ST17");
  refuses(file_of("{}", 1), 10, "1 bytes behind the last tensor, expected the end of the file", "ST17");
}

BOOST_AUTO_TEST_CASE(ST18_a_tensor_that_is_not_on_a_multiple_of_its_element_is_refused) {
  const char* header = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F16","shape":[1],"data_offsets":[1,3]}})";
  refuses(file_of(header, 3), 63, R"(tensor "b" is misaligned: it begins at data byte 1, expected a multiple of 2)", "ST18");
}

BOOST_AUTO_TEST_CASE(ST19_metadata_are_strings_by_name) {
  refuses(file_of(R"({"__metadata__":{"k":7}})"), 30, R"(__metadata__ "k" is 7, expected a string)", "ST19");
  for (const char* header : {R"({"__metadata__":[]})", R"({"__metadata__":"s"})", R"({"__metadata__":null})", R"({"__metadata__":1})",
                             R"({"__metadata__":{"k":null}})", R"({"__metadata__":{"k":{}}})", R"({"__metadata__":{"k":["s"]}})",
                             R"({"__metadata__":{"k":true}})", R"({"__metadata__":{"k":-1}})"})
    BOOST_TEST(rule_of(file_of(header)) == "ST19", header);
}

// The rule numbers that follow `mark` in a file.
std::set<std::string> rules_after(std::string_view mark, const std::filesystem::path& path) {
  const std::string text = kvproof::test::file_text(path);
  const std::string start = fmt::format("{}ST", mark);
  std::set<std::string> found;
  for (auto at = text.find(start); at != std::string::npos; at = text.find(start, at + 1)) found.insert(text.substr(at + mark.size(), 4));
  return found;
}

BOOST_AUTO_TEST_CASE(the_page_lists_exactly_the_rules_that_have_a_case_here) {
  const std::filesystem::path root = KVPROOF_SOURCE_DIR;
  const auto listed = rules_after("\n| ", root / "docs/safetensors.md");
  const auto tested = rules_after("\nBOOST_AUTO_TEST_CASE(", root / "engine/safetensors/rules_test.cpp");
  BOOST_TEST(listed == tested, boost::test_tools::per_element());
  BOOST_TEST(listed.size() == 20U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
