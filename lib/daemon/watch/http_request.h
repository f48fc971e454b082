// HttpRequest is a browser's or scraper's request, parsed from its head (RFC 9112) for method, path
// and Host.
//
// Untrusted input: refused if malformed, or if two readers could differ on path or host.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tokamak::daemon {

struct HttpRequest {
  std::string method;
  std::string path;                 // decoded, from '/' to the query; no 0 byte
  std::optional<std::string> host;  // as given, visible characters; nullopt: not named

  // `head`: request line and headers. nullopt: no request.
  static std::optional<HttpRequest> Parse(absl::string_view head);
};

// Returns the end of the head; npos: not yet come.
size_t EndOfHead(absl::string_view come);

}  // namespace tokamak::daemon
