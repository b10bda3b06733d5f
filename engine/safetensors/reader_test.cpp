#include "engine/safetensors/reader.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>

#include "engine/base/checked_size.hpp"
#include "engine/safetensors/test_files.hpp"

namespace {

using kvproof::SafetensorsFile;
using kvproof::test::file_of;

// Three dtypes, an empty tensor, a scalar, metadata: 8 + 4 + 1 + 2 bytes of data.
constexpr const char* kSmall =
    R"({"__metadata__":{"k":"v"},"a":{"dtype":"F64","shape":[],"data_offsets":[0,8]},"c":{"dtype":"F32","shape":[0,4],"data_offsets":[8,8]},)"
    R"("b":{"dtype":"I32","shape":[1,1],"data_offsets":[8,12]},"z\u00e4":{"dtype":"U8","shape":[3,1],"data_offsets":[12,15]}}   )";

void check_views(const SafetensorsFile& file) {
  for (const auto& tensor : file.tensors()) {
    const auto count = kvproof::checked_product(tensor.shape);
    BOOST_REQUIRE(count.has_value());
    BOOST_REQUIRE(*count * kvproof::dtype_size(tensor.dtype) == tensor.bytes.size());
    BOOST_REQUIRE(reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) % kvproof::dtype_size(tensor.dtype) == 0U);
    BOOST_REQUIRE(tensor.bytes.data() >= file.bytes().data());
    BOOST_REQUIRE(tensor.bytes.data() + tensor.bytes.size() <= file.bytes().data() + file.bytes().size());
    BOOST_REQUIRE(file.find(tensor.name) == &tensor);
  }
}

// True if the bytes are a legal file, false if they are refused as data; anything else fails the test.
bool reads(std::vector<std::byte> bytes) {
  try {
    check_views(SafetensorsFile::from_bytes(std::move(bytes), "damaged"));
    return true;
  } catch (const kvproof::DataError&) {
    return false;
  }
}

BOOST_AUTO_TEST_SUITE(reader)

BOOST_AUTO_TEST_CASE(tensors_stand_in_byte_order_of_their_names_with_their_bytes) {
  const auto file = SafetensorsFile::from_bytes(file_of(kSmall, 15), "small");
  check_views(file);
  std::vector<std::string> names;
  for (const auto& tensor : file.tensors()) names.push_back(tensor.name);
  BOOST_TEST(names == (std::vector<std::string>{"a", "b", "c", "zä"}), boost::test_tools::per_element());
  BOOST_TEST(std::to_integer<int>(file.find("zä")->bytes[0]) == 12);
  BOOST_TEST(file.find("c")->bytes.empty());
  BOOST_TEST(file.find("b")->shape == (std::vector<std::size_t>{1, 1}), boost::test_tools::per_element());
  BOOST_TEST(file.metadata().at("k") == "v");
  BOOST_TEST(file.where() == "small");
  BOOST_TEST((file.find("d") == nullptr));
}

BOOST_AUTO_TEST_CASE(a_file_on_disk_gives_the_same_views) {
  const kvproof::test::ScratchFolder folder("reader");
  const auto bytes = file_of(kSmall, 15);
  kvproof::test::write_text(folder / "small", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const auto file = SafetensorsFile::open(folder / "small");
  check_views(file);
  BOOST_TEST(file.bytes().size() == bytes.size());
  BOOST_TEST((file.find("a")->dtype == kvproof::Dtype::f64));
}

BOOST_AUTO_TEST_CASE(views_stay_where_they_are_when_the_file_moves) {
  auto file = SafetensorsFile::from_bytes(file_of(kSmall, 15), "small");
  const auto* view = file.find("b");
  const SafetensorsFile moved = std::move(file);
  BOOST_TEST((moved.find("b") == view));
}

BOOST_AUTO_TEST_CASE(a_file_without_tensors_is_legal) {
  BOOST_TEST(SafetensorsFile::from_bytes(file_of("{}"), "none").tensors().empty());
  BOOST_TEST(SafetensorsFile::from_bytes(file_of("{\"__metadata__\":{}}"), "none").tensors().empty());
}

BOOST_AUTO_TEST_CASE(a_header_of_any_length_gives_aligned_tensors) {
  std::string header = R"({"a":{"dtype":"F64","shape":[2],"data_offsets":[0,16]}})";
  const kvproof::test::ScratchFolder folder("unpadded");
  for (int padding = 0; padding < 9; ++padding, header += ' ') {
    const auto bytes = file_of(header, 16);
    const auto from_memory = SafetensorsFile::from_bytes(bytes, "unpadded");
    kvproof::test::write_text(folder / "f", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    const auto from_disk = SafetensorsFile::open(folder / "f");
    for (const auto* file : {&from_memory, &from_disk}) {
      check_views(*file);
      BOOST_TEST(std::ranges::equal(file->bytes(), bytes));
      BOOST_TEST(std::to_integer<int>(file->find("a")->bytes[15]) == 15);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_file_cut_anywhere_is_refused) {
  const auto whole = file_of(kSmall, 15);
  BOOST_REQUIRE(reads(whole));
  for (std::size_t length = 0; length < whole.size(); ++length)
    BOOST_TEST(!reads({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)}), "cut to " << length);
}

BOOST_AUTO_TEST_CASE(any_other_byte_anywhere_in_length_or_header_is_refused_or_read_soundly) {
  const auto whole = file_of(kSmall, 15);
  const std::size_t header_end = whole.size() - 15;
  std::size_t read = 0;
  for (std::size_t at = 0; at < header_end; ++at)
    for (int flip = 1; flip < 256; ++flip) {
      auto damaged = whole;
      damaged[at] ^= static_cast<std::byte>(flip);
      if (reads(std::move(damaged))) ++read;
    }
  BOOST_TEST(read > 0U);               // a letter of a name, say
  BOOST_TEST(read < header_end * 64);  // and the rest was looked at
}

BOOST_AUTO_TEST_CASE(a_byte_put_in_or_taken_out_anywhere_in_the_header_is_refused_or_read_soundly) {
  const auto whole = file_of(kSmall, 15);
  for (std::size_t at = 8; at < whole.size() - 15; ++at) {
    auto shorter = whole;
    shorter.erase(shorter.begin() + static_cast<std::ptrdiff_t>(at));
    shorter[0] = static_cast<std::byte>(std::to_integer<unsigned>(shorter[0]) - 1);
    reads(std::move(shorter));
    for (const char c : {'0', '"', ',', '{', '}', '[', ']', ' ', '-', '\\'}) {
      auto longer = whole;
      longer.insert(longer.begin() + static_cast<std::ptrdiff_t>(at), static_cast<std::byte>(c));
      longer[0] = static_cast<std::byte>(std::to_integer<unsigned>(longer[0]) + 1);
      reads(std::move(longer));
    }
  }
}

BOOST_AUTO_TEST_CASE(every_golden_file_opens) {
  const std::filesystem::path folder = std::filesystem::path(KVPROOF_SOURCE_DIR) / "golden";
  std::size_t count = 0;
  for (const auto& item : std::filesystem::recursive_directory_iterator(folder))
    if (item.path().extension() == ".safetensors") {
      check_views(SafetensorsFile::open(item.path()));
      ++count;
    }
  BOOST_TEST(count >= 38U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
