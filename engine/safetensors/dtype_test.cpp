#include "engine/safetensors/dtype.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(dtype)

BOOST_AUTO_TEST_CASE(every_name_leads_back_to_its_type) {
  using kvproof::Dtype;
  for (const Dtype type : {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::i64, Dtype::i32, Dtype::i16, Dtype::i8, Dtype::u64,
                           Dtype::u32, Dtype::u16, Dtype::u8, Dtype::boolean})
    BOOST_TEST((kvproof::dtype_from_name(kvproof::dtype_name(type)) == type));
}

BOOST_AUTO_TEST_CASE(names_and_sizes_are_those_of_the_format) {
  const std::pair<const char*, std::size_t> expected[] = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8}, {"I32", 4}, {"I16", 2},
                                                          {"I8", 1},  {"U64", 8}, {"U32", 4}, {"U16", 2},  {"U8", 1},  {"BOOL", 1}};
  for (const auto& [name, size] : expected) {
    const auto type = kvproof::dtype_from_name(name);
    BOOST_REQUIRE(type.has_value());
    BOOST_TEST(kvproof::dtype_size(*type) == size);
  }
}

BOOST_AUTO_TEST_CASE(other_names_are_no_type) {
  for (const char* name : {"", "f32", "F8_E4M3", "F32 ", "float32", "C64"}) BOOST_TEST(!kvproof::dtype_from_name(name).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
