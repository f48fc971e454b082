#include "tokamak/status.h"

#include <cstdio>
#include <cstdlib>
#include <ostream>

namespace tokamak {

const char* NameOf(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "OK";
    case StatusCode::kCancelled:
      return "CANCELLED";
    case StatusCode::kUnknown:
      return "UNKNOWN";
    case StatusCode::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case StatusCode::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case StatusCode::kNotFound:
      return "NOT_FOUND";
    case StatusCode::kAlreadyExists:
      return "ALREADY_EXISTS";
    case StatusCode::kPermissionDenied:
      return "PERMISSION_DENIED";
    case StatusCode::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case StatusCode::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case StatusCode::kAborted:
      return "ABORTED";
    case StatusCode::kOutOfRange:
      return "OUT_OF_RANGE";
    case StatusCode::kUnimplemented:
      return "UNIMPLEMENTED";
    case StatusCode::kInternal:
      return "INTERNAL";
    case StatusCode::kUnavailable:
      return "UNAVAILABLE";
    case StatusCode::kDataLoss:
      return "DATA_LOSS";
    case StatusCode::kUnauthenticated:
      return "UNAUTHENTICATED";
  }
  return "UNKNOWN";
}

std::string Status::ToString() const {
  if (ok()) return NameOf(code_);
  return std::string(NameOf(code_)) + ": " + message_;
}

std::ostream& operator<<(std::ostream& out, const Status& status) { return out << status.ToString(); }

namespace internal {

void EndWithoutValue(const Status& status) {
  std::fprintf(stderr, "tokamak: the value of a Result was asked for, but there is none: %s\n",
               status.ToString().c_str());
  std::abort();
}

void EndWithoutError() {
  std::fprintf(stderr, "tokamak: a Result was made of an OK Status: it needs a value, or an error\n");
  std::abort();
}

}  // namespace internal
}  // namespace tokamak
