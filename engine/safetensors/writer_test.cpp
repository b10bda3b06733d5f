#include "engine/safetensors/writer.hpp"

#include <boost/test/unit_test.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "engine/safetensors/reader.hpp"
#include "engine/safetensors/test_files.hpp"

namespace {

using kvproof::Dtype;
using kvproof::TensorToWrite;
using kvproof::test::bytes_of;
using kvproof::test::message_of;
namespace fs = std::filesystem;

const std::vector<std::byte> kEight = bytes_of("12345678"), kFour = bytes_of("abcd"), kThree = bytes_of("xyz");

std::vector<TensorToWrite> some_tensors() {
  return {{"small", Dtype::u8, {3}, kThree}, {"b", Dtype::f32, {1}, kFour}, {"a", Dtype::f32, {1, 1}, kFour}, {"wide", Dtype::i64, {}, kEight},
          {"none", Dtype::f16, {0, 4}, {}}};
}

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

BOOST_AUTO_TEST_SUITE(writer)

BOOST_AUTO_TEST_CASE(the_bytes_are_those_of_the_page) {
  const std::vector<TensorToWrite> tensors{{"b", Dtype::u8, {3}, kThree}, {"a\"", Dtype::f32, {1, 1}, kFour}};
  const std::string header = R"({"__metadata__":{"kvproof":"{\"x\":1}"},"a\"":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},)"
                             R"("b":{"dtype":"U8","shape":[3],"data_offsets":[4,7]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  BOOST_TEST((kvproof::encode_safetensors({{"kvproof", "{\"x\":1}"}}, tensors) == kvproof::test::raw_file(padded.size(), padded + "abcdxyz")));
}

BOOST_AUTO_TEST_CASE(what_was_written_is_read_back) {
  const auto file = kvproof::SafetensorsFile::from_bytes(kvproof::encode_safetensors({{"k", "v\n"}}, some_tensors()), "memory");
  BOOST_TEST(file.tensors().size() == 5U);
  BOOST_TEST(file.metadata().at("k") == "v\n");
  for (const auto& tensor : some_tensors()) {
    const auto* view = file.find(tensor.name);
    BOOST_REQUIRE((view != nullptr));
    BOOST_TEST((view->dtype == tensor.dtype));
    BOOST_TEST(view->shape == tensor.shape, boost::test_tools::per_element());
    BOOST_TEST(std::ranges::equal(view->bytes, tensor.bytes));
  }
}

BOOST_AUTO_TEST_CASE(wide_elements_come_first_and_names_decide_among_equals) {
  const auto file = kvproof::SafetensorsFile::from_bytes(kvproof::encode_safetensors({}, some_tensors()), "memory");
  std::vector<const std::byte*> starts;
  for (const char* name : {"wide", "a", "b", "small"}) starts.push_back(file.find(name)->bytes.data());
  BOOST_TEST(std::ranges::is_sorted(starts));
  BOOST_TEST((starts[0] - file.bytes().data()) % 8 == 0);
}

BOOST_AUTO_TEST_CASE(the_data_start_on_a_multiple_of_eight_whatever_the_names) {
  for (std::size_t length = 1; length <= 16; ++length) {
    const std::vector<TensorToWrite> tensors{{std::string(length, 'n'), Dtype::u8, {3}, kThree}};
    BOOST_TEST((kvproof::encode_safetensors({}, tensors).size() - 3) % 8 == 0U);
  }
}

BOOST_AUTO_TEST_CASE(the_order_of_the_list_does_not_change_the_bytes) {
  auto tensors = some_tensors();
  const auto bytes = kvproof::encode_safetensors({}, tensors);
  std::ranges::reverse(tensors);
  BOOST_TEST((kvproof::encode_safetensors({}, tensors) == bytes));
}

BOOST_AUTO_TEST_CASE(shape_and_bytes_that_disagree_are_refused) {
  const std::vector<TensorToWrite> tensors{{"a", Dtype::f32, {2, 3}, kFour}};
  BOOST_TEST(message_of<kvproof::ShapeError>([&] { (void)kvproof::encode_safetensors({}, tensors); }) ==
             "safetensors writer: tensor \"a\": 4 bytes of data, expected 24 for shape [2, 3] and dtype F32");
}

BOOST_AUTO_TEST_CASE(what_no_reader_would_take_is_not_written) {
  const auto refusal = [](std::vector<TensorToWrite> tensors) {
    return message_of<kvproof::ShapeError>([&] { (void)kvproof::encode_safetensors({}, tensors); });
  };
  BOOST_TEST(refusal({{"a", Dtype::u8, {3}, kThree}, {"a", Dtype::f32, {1}, kFour}}).find("stands twice") != std::string::npos);
  BOOST_TEST(refusal({{"__metadata__", Dtype::u8, {3}, kThree}}).find("reserved") != std::string::npos);
  BOOST_TEST(refusal({{"\xff", Dtype::u8, {3}, kThree}}).find("not UTF-8") != std::string::npos);
  BOOST_TEST(refusal({{"a", Dtype::f64, {std::size_t{1} << 61U}, {}}}).find("64 bits") != std::string::npos);
  BOOST_TEST(message_of<kvproof::ShapeError>([&] { (void)kvproof::encode_safetensors({{"k", "\x80"}}, {}); }).find("not UTF-8") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_file_holds_the_encoded_bytes_and_nothing_is_left_beside_it) {
  const kvproof::test::ScratchFolder folder("writer");
  kvproof::test::write_text(folder / "f", "old");
  kvproof::write_safetensors(folder / "f", {{"k", "v"}}, some_tensors());
  BOOST_TEST((bytes_of(kvproof::test::file_text(folder / "f")) == kvproof::encode_safetensors({{"k", "v"}}, some_tensors())));
  BOOST_TEST(files_in(folder.path()) == 1U);
}

BOOST_AUTO_TEST_CASE(tensors_made_in_pieces_give_the_same_file) {
  const kvproof::test::ScratchFolder folder("pieces");
  std::vector<std::byte> large((std::size_t{2} << 20U) + 12);  // two whole pieces and a rest
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<std::byte>(i * 7 + i / 251);
  const std::vector<TensorToWrite> tensors{{"s", Dtype::u8, {3}, kThree}, {"l", Dtype::f32, {large.size() / 4}, large}, {"n", Dtype::f16, {0}, {}}};
  std::vector<kvproof::TensorToMake> made;
  for (const auto& tensor : tensors) made.push_back({tensor.name, tensor.dtype, tensor.shape});
  kvproof::write_safetensors_in_pieces(folder / "f", {}, made, [&](std::size_t index, std::size_t offset, std::span<std::byte> out) {
    std::ranges::copy(tensors[index].bytes.subspan(offset, out.size()), out.begin());
  });
  BOOST_TEST((bytes_of(kvproof::test::file_text(folder / "f")) == kvproof::encode_safetensors({}, tensors)));
}

BOOST_AUTO_TEST_CASE(a_place_that_cannot_be_written_is_named_with_the_reason) {
  const kvproof::test::ScratchFolder folder("nowhere");
  kvproof::test::write_text(folder / "file", "");
  const auto refusal = [](const fs::path& path) { return message_of([&] { kvproof::write_safetensors(path, {}, {}); }); };
  BOOST_TEST(refusal(folder / "none/f") == (folder / "none/f").string() + ": cannot be made: No such file or directory");
  BOOST_TEST(refusal(folder / "file/f") == (folder / "file/f").string() + ": cannot be made: Not a directory");
}

BOOST_AUTO_TEST_CASE(a_rename_that_fails_leaves_nothing_behind) {
  const kvproof::test::ScratchFolder folder("rename");
  fs::create_directories(folder / "f/inside");
  const auto message = message_of([&] { kvproof::write_safetensors(folder / "f", {}, {}); });
  BOOST_TEST(message == (folder / "f").string() + ": cannot be renamed into place: Is a directory");
  BOOST_TEST(files_in(folder.path()) == 1U);
}

// A limit on the size of files stands for the disk that runs full in the middle of a write.
BOOST_AUTO_TEST_CASE(a_write_that_fails_halfway_keeps_the_old_file) {
  const kvproof::test::ScratchFolder folder("full");
  kvproof::test::write_text(folder / "f", "old");
  struct rlimit before {};
  BOOST_REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit low{100, before.rlim_max};
  BOOST_REQUIRE(::setrlimit(RLIMIT_FSIZE, &low) == 0);
  const auto message = message_of([&] { kvproof::write_safetensors(folder / "f", {}, some_tensors()); });
  BOOST_REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, handler);
  BOOST_TEST(message == (folder / "f").string() + ": cannot be written: File too large");
  BOOST_TEST(kvproof::test::file_text(folder / "f") == "old");
  BOOST_TEST(files_in(folder.path()) == 1U);
}

BOOST_AUTO_TEST_CASE(a_maker_that_throws_leaves_nothing_behind) {
  const kvproof::test::ScratchFolder folder("throws");
  const std::vector<kvproof::TensorToMake> tensors{{"a", Dtype::u8, {3}}};
  const auto fail = [](std::size_t, std::size_t, std::span<std::byte>) { throw std::runtime_error("no"); };
  BOOST_CHECK_THROW(kvproof::write_safetensors_in_pieces(folder / "f", {}, tensors, fail), std::runtime_error);
  BOOST_TEST(files_in(folder.path()) == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
