#include "engine/safetensors/writer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>  // fmt::join, since {fmt} 11

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include <nlohmann/json.hpp>
#include <numeric>

#include "engine/base/checked_size.hpp"
#include "engine/base/error.hpp"
#include "engine/safetensors/atomic_file.hpp"
#include "engine/safetensors/header.hpp"
#include "engine/safetensors/text.hpp"

namespace kvproof {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor bytes are written as they lie in memory");

using Metadata = std::map<std::string, std::string>;

// A header and the order in which it lists the tensors.
struct Plan {
  std::vector<std::byte> head;     // length word, header, padding
  std::vector<std::size_t> order;  // [n_tensors], indices into the caller's list
  std::vector<std::size_t> bytes;  // [n_tensors], by the caller's index
};

void require(bool holds, const std::string& name, std::string found, std::string expected) {
  if (!holds) throw ShapeError({fmt::format("safetensors writer: tensor {}", shown(name)), std::move(found), std::move(expected), ""});
}

std::string quoted(const std::string& text) {
  require(!first_broken_utf8(text).has_value(), text, "a text that is not UTF-8", "UTF-8 without NUL bytes");
  return nlohmann::json(text).dump();
}

std::size_t byte_count(const TensorToMake& tensor) {
  const auto count = checked_product(tensor.shape);
  const auto bytes = count ? checked_product(*count, dtype_size(tensor.dtype)) : std::nullopt;
  require(bytes.has_value(), tensor.name, "more elements than 64 bits can count", "a shape whose bytes can be counted");
  return *bytes;
}

std::vector<std::size_t> file_order(std::span<const TensorToMake> tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    const std::size_t size_a = dtype_size(tensors[a].dtype), size_b = dtype_size(tensors[b].dtype);
    return size_a != size_b ? size_a > size_b : tensors[a].name < tensors[b].name;
  });
  return order;
}

void require_distinct(std::span<const TensorToMake> tensors) {
  std::vector<std::string_view> names;  // [n_tensors]
  for (const auto& tensor : tensors) names.push_back(tensor.name);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  require(twice == names.end(), twice == names.end() ? "" : std::string(*twice), "its name stands twice", "each name once");
  require(!std::ranges::binary_search(names, std::string_view("__metadata__")), "__metadata__", "a reserved name", "another");
}

std::string metadata_text(const Metadata& metadata) {
  if (metadata.empty()) return "";
  std::string text = "\"__metadata__\":{";
  for (const auto& [key, value] : metadata) text += fmt::format("{}:{},", quoted(key), quoted(value));
  text.back() = '}';  // in place of the last comma
  return text;
}

std::string entry_text(const TensorToMake& tensor, std::size_t begin, std::size_t end) {
  return fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", quoted(tensor.name), dtype_name(tensor.dtype),
                     fmt::join(tensor.shape, ","), begin, end);
}

std::vector<std::byte> head_of(std::string text) {
  text.append((8 - text.size() % 8) % 8, ' ');
  require(text.size() <= kLongestHeader, "", fmt::format("a header of {} bytes", text.size()), fmt::format("at most {}", kLongestHeader));
  const std::uint64_t length = text.size();
  std::vector<std::byte> head(kLengthBytes + text.size());
  std::memcpy(head.data(), &length, kLengthBytes);
  std::memcpy(head.data() + kLengthBytes, text.data(), text.size());
  return head;
}

Plan plan_file(const Metadata& metadata, std::span<const TensorToMake> tensors) {
  require_distinct(tensors);
  Plan plan{{}, file_order(tensors), {}};
  for (const auto& tensor : tensors) plan.bytes.push_back(byte_count(tensor));
  std::string text = fmt::format("{{{}", metadata_text(metadata));
  std::size_t begin = 0;
  for (const std::size_t index : plan.order) {
    const std::size_t end = begin + plan.bytes[index];
    require(end >= begin, tensors[index].name, "a file of more than 2^64 bytes", "a smaller one");
    if (text.size() > 1) text += ',';
    text += entry_text(tensors[index], begin, end);
    begin = end;
  }
  text += '}';
  plan.head = head_of(std::move(text));
  return plan;
}

Plan plan_file(const Metadata& metadata, std::span<const TensorToWrite> tensors) {
  std::vector<TensorToMake> made;
  for (const auto& tensor : tensors) made.push_back({tensor.name, tensor.dtype, tensor.shape});
  Plan plan = plan_file(metadata, made);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    require(tensors[i].bytes.size() == plan.bytes[i], tensors[i].name, fmt::format("{} bytes of data", tensors[i].bytes.size()),
            fmt::format("{} for shape [{}] and dtype {}", plan.bytes[i], fmt::join(tensors[i].shape, ", "), dtype_name(tensors[i].dtype)));
  return plan;
}

}  // namespace

std::vector<std::byte> encode_safetensors(const Metadata& metadata, std::span<const TensorToWrite> tensors) {
  Plan plan = plan_file(metadata, tensors);
  std::vector<std::byte> file = std::move(plan.head);
  for (const std::size_t index : plan.order) file.insert(file.end(), tensors[index].bytes.begin(), tensors[index].bytes.end());
  return file;
}

void write_safetensors(const std::filesystem::path& path, const Metadata& metadata, std::span<const TensorToWrite> tensors) {
  const Plan plan = plan_file(metadata, tensors);
  std::vector<std::span<const std::byte>> parts{plan.head};
  for (const std::size_t index : plan.order) parts.push_back(tensors[index].bytes);
  write_file_atomically(path, parts);
}

void write_safetensors_in_pieces(const std::filesystem::path& path, const Metadata& metadata, std::span<const TensorToMake> tensors,
                                 const MakeBytes& make) {
  constexpr std::size_t kPiece = std::size_t{1} << 20U;
  const Plan plan = plan_file(metadata, tensors);
  AtomicFile file(path);
  file.write(plan.head);
  std::vector<std::byte> buffer(kPiece);
  for (const std::size_t index : plan.order) {
    for (std::size_t offset = 0; offset < plan.bytes[index]; offset += kPiece) {
      const auto piece = std::span(buffer).first(std::min(kPiece, plan.bytes[index] - offset));
      make(index, offset, piece);
      file.write(piece);
    }
  }
  file.commit();
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::span<const std::byte>> parts) {
  AtomicFile file(path);
  for (const auto part : parts) file.write(part);
  file.commit();
}

}  // namespace kvproof
