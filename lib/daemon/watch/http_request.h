// HttpRequest is what a browser or a scraper asks for, out of the first lines that it sends (RFC
// 9112): of these the method, the path and the Host count, and nothing else.
//
// They come from whoever reaches the port. What is no request, or names its path or its host in a
// way that two readers could take for two, is none.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tokamak::daemon {

struct HttpRequest {
  std::string method;
  std::string path;                 // decoded, from its '/' to the query; without a 0 byte
  std::optional<std::string> host;  // as it stands there, of visible characters; none: not named

  // `head`: the request line and the headers. Nothing: it is no request.
  static std::optional<HttpRequest> Parse(absl::string_view head);
};

// Where the request's line and headers end in what has come; npos: not yet.
size_t EndOfHead(absl::string_view come);

}  // namespace tokamak::daemon
