// HttpRequest is a request of a browser or scraper, parsed from its head (RFC 9112): only the
// method, the path and the Host count.
//
// The head is untrusted. One that is malformed, or whose path or host two readers could take for
// two, is refused.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tokamak::daemon {

struct HttpRequest {
  std::string method;
  std::string path;                 // decoded, from its '/' to the query; without a 0 byte
  std::optional<std::string> host;  // as given, of visible characters; nullopt: not named

  // `head`: the request line and the headers. nullopt: it is no request.
  static std::optional<HttpRequest> Parse(absl::string_view head);
};

// Returns where the head ends in the bytes so far; npos: not yet.
size_t EndOfHead(absl::string_view come);

}  // namespace tokamak::daemon
