#include "engine/safetensors/header.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>  // fmt::join, since {fmt} 11

#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/checked_size.hpp"
#include "engine/base/error.hpp"
#include "engine/safetensors/text.hpp"

// A header is read as a stream of events, not as a document: each error then knows the byte it stands at, a second key of
// the same name is seen at all, and nothing is kept of a file that is refused.

namespace kvproof {
namespace {

constexpr std::size_t kMostExtents = 64;  // as many as numpy allows; without a limit a 100 MB header could hold 50 million

class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(const std::string& where, const std::size_t& consumed) : where_(where), consumed_(consumed) {}
  Header take() { return std::move(header_); }

  bool null() override { return odd("null"); }
  bool boolean(bool value) override { return odd(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return odd(fmt::format("{}", value)); }
  bool number_float(number_float_t /*value*/, const string_t& text) override { return odd(cut(text, 40)); }
  bool binary(binary_t& /*value*/) override { return odd("binary"); }
  bool number_unsigned(number_unsigned_t value) override;
  bool string(string_t& value) override;
  bool start_object(std::size_t size) override;
  bool key(string_t& name) override;
  bool end_object() override;
  bool start_array(std::size_t size) override;
  bool end_array() override;
  bool parse_error(std::size_t position, const std::string& token, const nlohmann::detail::exception& error) override;

 private:
  enum class Place { before, top, entry, metadata, after };
  enum class Field { none, dtype, shape, offsets };

  // The byte read last: a key's or string's closing quote, a bracket, or what ends a number.
  [[nodiscard]] std::size_t at() const { return kLengthBytes + (consumed_ == 0 ? 0 : consumed_ - 1); }
  [[noreturn]] void refuse(const char* rule, std::string found, std::string expected) const {
    refuse_file(where_, at(), rule, std::move(found), std::move(expected));
  }
  [[noreturn]] void refuse_entry(const char* rule, const std::string& found, std::string expected) const {
    refuse_file(where_, entry_.at, rule, fmt::format("{} {}", subject(), found), std::move(expected));
  }
  [[nodiscard]] std::string subject() const { return fmt::format("tensor {}", shown(entry_.name)); }
  bool odd(const std::string& found);
  void top_key(const std::string& name);
  void entry_key(const std::string& name);
  void close_entry();
  void check_size();

  const std::string& where_;
  const std::size_t& consumed_;
  Header header_;
  std::set<std::string> names_;
  Place place_ = Place::before;
  Field field_ = Field::none;
  bool in_array_ = false;
  bool metadata_next_ = false;
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
  std::string metadata_key_;
  std::vector<std::size_t> offsets_;
  HeaderEntry entry_;
};

// Any value that the place where it stands does not allow.
bool HeaderReader::odd(const std::string& found) {
  if (place_ == Place::metadata) refuse("ST19", fmt::format("__metadata__ {} is {}", shown(metadata_key_), found), "a string");
  if (place_ == Place::before) refuse("ST04", found, "a JSON object");
  if (place_ == Place::top && metadata_next_) refuse("ST19", "__metadata__ is " + found, "an object of strings");
  if (place_ == Place::top) refuse("ST08", fmt::format("{} is {}", subject(), found), "an object with dtype, shape and data_offsets");
  if (field_ == Field::dtype) refuse("ST09", fmt::format("{} has dtype {}", subject(), found), "a dtype's name as a string");
  if (field_ == Field::shape) refuse("ST10", fmt::format("{} has {} in its shape", subject(), found), "an array of whole numbers from 0 to 2^64 - 1");
  refuse("ST12", fmt::format("{} has {} in its data_offsets", subject(), found), "an array of two whole numbers from 0 to 2^64 - 1");
}

bool HeaderReader::number_unsigned(number_unsigned_t value) {
  static_assert(sizeof(std::size_t) == sizeof(number_unsigned_t), "sizes of the format are 64 bits");
  if (!in_array_) return odd(fmt::format("{}", value));
  auto& list = field_ == Field::shape ? entry_.shape : offsets_;
  if (field_ == Field::shape && list.size() == kMostExtents)
    refuse("ST10", fmt::format("{} has more than {} extents", subject(), kMostExtents), "fewer");
  if (field_ == Field::offsets && list.size() == 2) refuse("ST12", subject() + " has a third number in its data_offsets", "two");
  list.push_back(value);
  return true;
}

bool HeaderReader::string(string_t& value) {
  if (place_ == Place::metadata) {
    header_.metadata[metadata_key_] = std::move(value);
    return true;
  }
  if (place_ != Place::entry || field_ != Field::dtype) return odd("the string " + shown(value));
  const auto dtype = dtype_from_name(value);
  if (!dtype)
    refuse("ST09", fmt::format("{} has dtype {}", subject(), shown(value)),
           "one of F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, BOOL");
  entry_.dtype = *dtype;
  return true;
}

bool HeaderReader::start_object(std::size_t /*size*/) {
  if (place_ == Place::before)
    place_ = Place::top;
  else if (place_ == Place::top)
    place_ = metadata_next_ ? Place::metadata : Place::entry;
  else
    return odd("an object");
  return true;
}

bool HeaderReader::key(string_t& name) {
  if (place_ == Place::top) {
    top_key(name);
  } else if (place_ == Place::entry) {
    entry_key(name);
  } else {
    if (header_.metadata.contains(name)) refuse("ST07", fmt::format("__metadata__ key {} a second time", shown(name)), "each key once");
    metadata_key_ = name;
  }
  return true;
}

void HeaderReader::top_key(const std::string& name) {
  if (!names_.insert(name).second) refuse("ST07", fmt::format("the name {} a second time", shown(name)), "each name once");
  metadata_next_ = name == "__metadata__";
  entry_ = HeaderEntry{};
  entry_.name = name;
  entry_.at = at();
  offsets_.clear();
  has_dtype_ = has_shape_ = has_offsets_ = false;
  field_ = Field::none;
}

void HeaderReader::entry_key(const std::string& name) {
  bool* has = nullptr;
  if (name == "dtype") has = &has_dtype_, field_ = Field::dtype;
  if (name == "shape") has = &has_shape_, field_ = Field::shape;
  if (name == "data_offsets") has = &has_offsets_, field_ = Field::offsets;
  if (has == nullptr)
    refuse("ST08", fmt::format("{} has the key {}", subject(), shown(name)), "dtype, shape and data_offsets, nothing else");
  if (*has) refuse("ST07", fmt::format("{} has {} a second time", subject(), name), "each key once");
  *has = true;
}

bool HeaderReader::start_array(std::size_t /*size*/) {
  if (in_array_ || place_ != Place::entry || field_ == Field::dtype) return odd("an array");
  in_array_ = true;
  return true;
}

bool HeaderReader::end_array() {
  in_array_ = false;
  if (field_ == Field::offsets && offsets_.size() != 2)
    refuse("ST12", fmt::format("{} has {} numbers in its data_offsets", subject(), offsets_.size()), "two");
  return true;
}

bool HeaderReader::end_object() {
  if (place_ == Place::entry) close_entry();
  place_ = place_ == Place::top ? Place::after : Place::top;
  return true;
}

void HeaderReader::close_entry() {
  const char* missing = !has_dtype_ ? "dtype" : !has_shape_ ? "shape" : !has_offsets_ ? "data_offsets" : nullptr;
  if (missing != nullptr) refuse_entry("ST08", fmt::format("has no {}", missing), "dtype, shape and data_offsets");
  entry_.begin = offsets_[0];
  entry_.end = offsets_[1];
  if (entry_.begin > entry_.end)
    refuse_entry("ST12", fmt::format("has data_offsets [{}, {}]", entry_.begin, entry_.end), "a begin that is not behind its end");
  check_size();
  header_.entries.push_back(std::move(entry_));
  entry_ = HeaderEntry{};
}

void HeaderReader::check_size() {
  const std::size_t held = entry_.end - entry_.begin;
  const auto count = checked_product(entry_.shape);
  const auto bytes = count ? checked_product(*count, dtype_size(entry_.dtype)) : std::nullopt;
  const std::string shape = cut(fmt::format("[{}]", fmt::join(entry_.shape, ", ")), 100);
  if (!bytes) refuse_entry("ST11", fmt::format("has shape {}", shape), "a shape whose bytes 64 bits can count");
  const std::size_t wanted = bytes.value_or(0);  // there is one; g++ 14 does not see that refuse_entry ends the call
  if (wanted != held)
    refuse_entry("ST14", fmt::format("has {} bytes of data", held), fmt::format("{} for shape {} and dtype {}", wanted, shape, dtype_name(entry_.dtype)));
}

bool HeaderReader::parse_error(std::size_t /*position*/, const std::string& /*token*/, const nlohmann::detail::exception& error) {
  refuse("ST06", json_reason(error.what()), "one JSON object");
}

}  // namespace

void refuse_file(const std::string& where, std::size_t at, const char* rule, std::string found, std::string expected) {
  throw DataError({fmt::format("{} @ byte {}", where, at), std::move(found), std::move(expected),
                   fmt::format("Rule {} of docs/safetensors.md", rule)});
}

Header parse_header(std::string_view text, const std::string& where) {
  if (text.empty() || text[0] != '{')
    refuse_file(where, kLengthBytes, "ST04", text.empty() ? "an empty header" : "a header that does not start with {", "a JSON object");
  if (const auto broken = first_broken_utf8(text))
    refuse_file(where, kLengthBytes + *broken, "ST05",
                fmt::format("byte 0x{:02x} is not UTF-8 text", static_cast<unsigned char>(text[*broken])), "a header in UTF-8");
  std::size_t consumed = 0, ignored = 0;
  HeaderReader reader(where, consumed);
  const bool parsed = nlohmann::json::sax_parse(CountingIterator(text.data(), &consumed),
                                                CountingIterator(text.data() + text.size(), &ignored), &reader);
  if (!parsed) refuse_file(where, kLengthBytes, "ST06", "a header that is not JSON", "one JSON object");
  return reader.take();
}

}  // namespace kvproof
