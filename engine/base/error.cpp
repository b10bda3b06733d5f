#include "engine/base/error.hpp"

#include <fmt/format.h>

namespace kvproof {
namespace {

std::string sentence(const Complaint& complaint) {
  std::string text = fmt::format("{}: {}", complaint.where, complaint.found);
  if (!complaint.expected.empty()) text += fmt::format(", expected {}", complaint.expected);
  if (!complaint.next.empty()) text += fmt::format(". {}", complaint.next);
  return text;
}

}  // namespace

Error::Error(Complaint complaint) : std::runtime_error(sentence(complaint)), complaint_(std::move(complaint)) {}

}  // namespace kvproof
