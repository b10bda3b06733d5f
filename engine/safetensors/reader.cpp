#include "engine/safetensors/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "engine/safetensors/file_bytes.hpp"
#include "engine/safetensors/header.hpp"
#include "engine/safetensors/text.hpp"

namespace kvproof {

static_assert(std::endian::native == std::endian::little, "tensor bytes are little-endian and used where they lie");

struct SafetensorsFile::Storage {
  FileBytes file;
  std::string where;
  std::vector<TensorView> tensors;
  std::map<std::string, std::string> metadata;
};

namespace {

std::size_t header_length(std::span<const std::byte> bytes, const std::string& where) {
  if (bytes.size() < kLengthBytes) refuse_file(where, 0, "ST01", fmt::format("a file of {} bytes", bytes.size()), "8 bytes of header length");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > kLongestHeader)
    refuse_file(where, 0, "ST02", fmt::format("a header of {} bytes", length), fmt::format("at most {}", kLongestHeader));
  if (length > bytes.size() - kLengthBytes)
    refuse_file(where, 0, "ST03", fmt::format("a header of {} bytes in a file of {}", length, bytes.size()), "a header that ends in the file");
  return length;
}

// The entries in byte order must follow each other from the first data byte to the last: no hole, overlap or rest.
void check_layout(std::vector<HeaderEntry>& entries, std::size_t data_start, std::size_t data_size, const std::string& where) {
  std::ranges::sort(entries, {}, [](const HeaderEntry& entry) { return std::pair(entry.begin, entry.end); });
  std::size_t reached = 0;
  for (const HeaderEntry& entry : entries) {
    const auto refuse = [&](const char* rule, const char* verb, std::size_t found, const std::string& expected) {
      refuse_file(where, entry.at, rule, fmt::format("tensor {} {} data byte {}", shown(entry.name), verb, found), expected);
    };
    if (entry.end > data_size) refuse("ST13", "ends at", entry.end, fmt::format("at most {}: the file ends there", data_size));
    if (entry.begin < reached) refuse("ST15", "overlaps another: it begins at", entry.begin, fmt::format("{}", reached));
    if (entry.begin > reached) refuse("ST16", "leaves a hole: it begins at", entry.begin, fmt::format("{}", reached));
    if (entry.begin % dtype_size(entry.dtype) != 0)
      refuse("ST18", "is misaligned: it begins at", entry.begin, fmt::format("a multiple of {}", dtype_size(entry.dtype)));
    reached = entry.end;
  }
  if (reached != data_size)
    refuse_file(where, data_start + reached, "ST17", fmt::format("{} bytes behind the last tensor", data_size - reached), "the end of the file");
}

std::vector<TensorView> make_views(std::vector<HeaderEntry>& entries, std::span<const std::byte> data) {
  std::vector<TensorView> views;
  views.reserve(entries.size());
  for (HeaderEntry& entry : entries)
    views.push_back({std::move(entry.name), entry.dtype, std::move(entry.shape), data.subspan(entry.begin, entry.end - entry.begin), entry.at});
  std::ranges::sort(views, {}, &TensorView::name);
  return views;
}

// Old writers did not pad the header (the first GPT-2 files on the hub are such): then no map can be aligned, and the bytes
// move once to a place where the first data byte is.
FileBytes with_aligned_data(FileBytes file, std::size_t data_start) {
  const auto address = reinterpret_cast<std::uintptr_t>(file.bytes().data()) + data_start;
  return address % 8 == 0 ? std::move(file) : file.copied_for(data_start);
}

}  // namespace

SafetensorsFile::SafetensorsFile(std::unique_ptr<Storage> storage) noexcept : storage_(std::move(storage)) {}
SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;
SafetensorsFile::~SafetensorsFile() = default;

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) { return checked(FileBytes::map(path), path.string()); }

SafetensorsFile SafetensorsFile::from_bytes(std::vector<std::byte> bytes, std::string where) {
  return checked(FileBytes::own(std::move(bytes)), std::move(where));
}

SafetensorsFile SafetensorsFile::checked(FileBytes file, std::string where) {
  const std::size_t length = header_length(file.bytes(), where);
  const std::size_t data_start = kLengthBytes + length;
  const auto* text = reinterpret_cast<const char*>(file.bytes().data()) + kLengthBytes;
  Header header = parse_header(std::string_view(text, length), where);
  check_layout(header.entries, data_start, file.bytes().size() - data_start, where);
  file = with_aligned_data(std::move(file), data_start);
  auto views = make_views(header.entries, file.bytes().subspan(data_start));
  return SafetensorsFile(std::make_unique<Storage>(Storage{std::move(file), std::move(where), std::move(views), std::move(header.metadata)}));
}

const std::string& SafetensorsFile::where() const noexcept { return storage_->where; }
std::span<const TensorView> SafetensorsFile::tensors() const noexcept { return storage_->tensors; }
const std::map<std::string, std::string>& SafetensorsFile::metadata() const noexcept { return storage_->metadata; }
std::span<const std::byte> SafetensorsFile::bytes() const noexcept { return storage_->file.bytes(); }

const TensorView* SafetensorsFile::find(std::string_view name) const noexcept {
  const auto& all = storage_->tensors;
  const auto found = std::ranges::lower_bound(all, name, {}, &TensorView::name);
  return found != all.end() && found->name == name ? &*found : nullptr;
}

}  // namespace kvproof
