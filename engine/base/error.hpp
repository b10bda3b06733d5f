#pragma once
#include <stdexcept>
#include <string>

namespace kvproof {

/// What a reader of an error needs: the place, what was there, what should have been, what to do next.
struct Complaint {
  std::string where;     ///< file, byte offset, step, option, or function
  std::string found;     ///< what was there, with its value
  std::string expected;  ///< what should have been there; empty if `found` says it all
  std::string next;      ///< the next thing to do; empty if we do not know one
};

/// Bad input from outside: a file, a JSON text, an argument.
///
/// what() reads `where: found, expected …. next`. Libraries throw it and never print, exit or abort.
class Error : public std::runtime_error {
 public:
  explicit Error(Complaint complaint);
  [[nodiscard]] const Complaint& complaint() const noexcept { return complaint_; }

 private:
  Complaint complaint_;
};

/// Data that are corrupt or do not belong together (exit code 3 of the command).
class DataError : public Error {
 public:
  using Error::Error;
};

/// A span or a size that does not fit the shape its function states.
class ShapeError : public Error {
 public:
  using Error::Error;
};

}  // namespace kvproof
