// Status says whether a call went well, and if not, why. Result is a Status or what was asked for.
//
//   tokamak::Result<tokamak::Buffer> buffer = client.Get(id, std::chrono::seconds(5));
//   if (!buffer.ok()) {
//     std::cerr << buffer.status() << std::endl;   // DEADLINE_EXCEEDED: ..., and what to do next
//     return;
//   }
//   Use(buffer->data());
//
// Nothing of this library throws, but for std::bad_alloc where the machine has no memory left.
// Thread rule: both are plain values.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace tokamak {

// The numbers are those of gRPC, and stay as they are. client.h says which calls return which, and
// what they mean there.
enum class StatusCode : int {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

// "NOT_FOUND"; of a number that is none of these, "UNKNOWN". The text lives for ever.
const char* NameOf(StatusCode code);

class [[nodiscard]] Status final {
 public:
  // OK.
  Status() = default;

  // `message` is for people: one line that names the remedy. With kOk it is dropped.
  Status(StatusCode code, std::string_view message) : code_(code), message_(code == StatusCode::kOk ? "" : message) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }

  // Empty where ok(). Its words may change with any release: decide by the code.
  const std::string& message() const { return message_; }

  // "OK", or "NOT_FOUND: no node holds object 00..07".
  std::string ToString() const;

  // For the rare call whose failure is of no interest.
  void IgnoreError() const {}

  friend bool operator==(const Status& a, const Status& b) { return a.code_ == b.code_ && a.message_ == b.message_; }
  friend bool operator!=(const Status& a, const Status& b) { return !(a == b); }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

std::ostream& operator<<(std::ostream& out, const Status& status);

// The library's own.
namespace internal {
[[noreturn]] void EndWithoutValue(const Status& status);
[[noreturn]] void EndWithoutError();
}  // namespace internal

// A value, or the Status that says why there is none. Where there is none, asking for it ends the
// program with that text: look at ok() first.
template <typename T>
class [[nodiscard]] Result final {
 public:
  using value_type = T;

  // An error; OK is no error, and ends the program.
  Result(const Status& error) : held_(error) { CheckError(); }
  Result(Status&& error) : held_(std::move(error)) { CheckError(); }

  // A value, or what converts to one.
  template <typename U = T, typename Plain = std::remove_cv_t<std::remove_reference_t<U>>,
            typename = std::enable_if_t<std::is_convertible_v<U&&, T> && !std::is_same_v<Plain, Result> &&
                                        !std::is_same_v<Plain, Status>>>
  Result(U&& value) : held_(std::in_place_index<1>, std::forward<U>(value)) {}

  bool ok() const { return held_.index() == 1; }

  // OK, or the error.
  Status status() const { return ok() ? Status() : std::get<0>(held_); }

  T& value() & { return CheckValue(), std::get<1>(held_); }
  const T& value() const& { return CheckValue(), std::get<1>(held_); }
  T&& value() && { return CheckValue(), std::get<1>(std::move(held_)); }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  void CheckValue() const {
    if (!ok()) internal::EndWithoutValue(std::get<0>(held_));
  }
  void CheckError() const {
    if (std::get<0>(held_).ok()) internal::EndWithoutError();
  }

  std::variant<Status, T> held_;
};

}  // namespace tokamak
