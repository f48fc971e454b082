#include "lib/daemon/watch/http_request.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace tokamak::daemon {
namespace {

bool IsVisible(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); });
}

absl::string_view TakeLine(absl::string_view& text) {
  const size_t end = text.find('\n');
  absl::string_view line = text.substr(0, end);
  text.remove_prefix(end == absl::string_view::npos ? text.size() : end + 1);
  absl::ConsumeSuffix(&line, "\r");
  return line;
}

// False: named twice, or ambiguous.
bool TakeHost(absl::string_view headers, std::optional<std::string>& host) {
  while (!headers.empty()) {
    const absl::string_view line = TakeLine(headers);
    const size_t colon = line.find(':');
    const absl::string_view name = line.substr(0, colon);
    if (!absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(name), "host")) continue;
    const absl::string_view value =
        colon == absl::string_view::npos ? "" : absl::StripAsciiWhitespace(line.substr(colon + 1));
    if (host.has_value() || name.size() != 4 || value.empty() || !IsVisible(value)) return false;
    host.emplace(value);
  }
  return true;
}

// nullopt: badly encoded, or a 0 byte.
std::optional<std::string> DecodePath(absl::string_view text) {
  std::string path;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      uint32_t byte = 0;
      const absl::string_view hex = text.substr(i + 1, 2);
      const bool is_hex = hex.size() == 2 && absl::ascii_isxdigit(static_cast<unsigned char>(hex[0])) &&
                          absl::ascii_isxdigit(static_cast<unsigned char>(hex[1]));
      if (!is_hex || !absl::SimpleHexAtoi(hex, &byte)) return std::nullopt;
      c = static_cast<char>(byte);
      i += 2;
    }
    if (c == '\0') return std::nullopt;
    path.push_back(c);
  }
  return path;
}

}  // namespace

std::optional<HttpRequest> HttpRequest::Parse(absl::string_view head) {
  const absl::string_view line = TakeLine(head);
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == absl::string_view::npos || first == last || !absl::StartsWith(line.substr(last), " HTTP/1.")) {
    return std::nullopt;
  }
  HttpRequest request;
  request.method = std::string(line.substr(0, first));
  const absl::string_view target = line.substr(first + 1, last - first - 1);
  if (request.method.empty() || !absl::StartsWith(target, "/") || !IsVisible(target)) return std::nullopt;
  std::optional<std::string> path = DecodePath(target.substr(0, target.find_first_of("?#")));
  if (!path) return std::nullopt;
  request.path = *std::move(path);
  if (!TakeHost(head, request.host)) return std::nullopt;
  return request;
}

size_t EndOfHead(absl::string_view come) {
  const size_t strict = come.find("\r\n\r\n"), bare = come.find("\n\n");
  if (strict == absl::string_view::npos && bare == absl::string_view::npos) return absl::string_view::npos;
  return std::min(strict == absl::string_view::npos ? strict : strict + 4,
                  bare == absl::string_view::npos ? bare : bare + 2);
}

}  // namespace tokamak::daemon
