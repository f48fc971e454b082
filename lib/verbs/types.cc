#include "lib/verbs/types.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tokamak::verbs {
namespace {

constexpr size_t kIpv4Offset = 12;  // in the IPv4-mapped form

bool ParseDecimal(absl::string_view text, uint32_t max, uint32_t* value) {
  if (text.empty() || text.size() > 5 || (text.size() > 1 && text[0] == '0')) return false;
  uint32_t sum = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return false;
    sum = sum * 10 + static_cast<uint32_t>(c - '0');
  }
  *value = sum;
  return sum <= max;
}

// Without digits it leaves `port` as it is.
bool ParsePort(std::optional<absl::string_view> digits, uint16_t* port) {
  if (!digits) return true;
  uint32_t value = 0;
  if (!ParseDecimal(*digits, 65535, &value)) return false;
  *port = static_cast<uint16_t>(value);
  return true;
}

// Takes at most four digits.
bool ParseHex(absl::string_view text, uint32_t* value) {
  const auto is_digit = [](char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); };
  return !text.empty() && text.size() <= 4 && std::all_of(text.begin(), text.end(), is_digit) &&
         absl::SimpleHexAtoi(text, value);
}

bool ParseIpv4(absl::string_view text, uint8_t* bytes) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '.');
  if (parts.size() != 4) return false;
  for (size_t i = 0; i < 4; ++i) {
    uint32_t value = 0;
    if (!ParseDecimal(parts[i], 255, &value)) return false;
    bytes[i] = static_cast<uint8_t>(value);
  }
  return true;
}

// 16-bit groups as bytes; the last may be an IPv4 address.
bool ParseGroups(absl::string_view text, bool last_half, std::vector<uint8_t>* bytes) {
  if (text.empty()) return true;
  const std::vector<absl::string_view> groups = absl::StrSplit(text, ':');
  for (size_t i = 0; i < groups.size(); ++i) {
    const absl::string_view group = groups[i];
    uint8_t ipv4[4];
    if (last_half && i + 1 == groups.size() && ParseIpv4(group, ipv4)) {
      bytes->insert(bytes->end(), ipv4, ipv4 + 4);
      continue;
    }
    uint32_t value = 0;
    if (!ParseHex(group, &value)) return false;
    bytes->push_back(static_cast<uint8_t>(value >> 8));
    bytes->push_back(static_cast<uint8_t>(value));
  }
  return true;
}

bool ParseIpv6(absl::string_view text, std::array<uint8_t, 16>* ip) {
  std::vector<uint8_t> head;
  std::vector<uint8_t> tail;
  const size_t gap = text.find("::");
  if (gap == absl::string_view::npos) {
    if (!ParseGroups(text, true, &head) || head.size() != ip->size()) return false;
  } else {
    if (!ParseGroups(text.substr(0, gap), false, &head) || !ParseGroups(text.substr(gap + 2), true, &tail))
      return false;
    if (head.size() + tail.size() > ip->size() - 2) return false;
  }
  ip->fill(0);
  std::copy(head.begin(), head.end(), ip->begin());
  std::copy(tail.begin(), tail.end(), ip->end() - static_cast<ptrdiff_t>(tail.size()));
  return true;
}

// RFC 5952: lower case, no leading zeros, "::" for the first longest run of at least two zero
// groups.
std::string FormatIpv6(const std::array<uint8_t, 16>& ip) {
  std::array<uint32_t, 8> groups;
  for (size_t i = 0; i < 8; ++i) groups[i] = uint32_t{ip[2 * i]} << 8 | ip[2 * i + 1];
  size_t gap = 8;
  size_t gap_length = 1;
  for (size_t i = 0; i < 8; ++i) {
    size_t end = i;
    while (end < 8 && groups[end] == 0) ++end;
    if (end - i > gap_length) {
      gap = i;
      gap_length = end - i;
    }
  }
  std::string text;
  for (size_t i = 0; i < 8; ++i) {
    if (i == gap) {
      text += "::";
      i += gap_length - 1;
      continue;
    }
    if (!text.empty() && text.back() != ':') text += ':';
    absl::StrAppend(&text, absl::Hex(groups[i]));
  }
  return text;
}

}  // namespace

absl::StatusOr<Address> Address::Parse(absl::string_view text) {
  const auto bad = [text] { return absl::InvalidArgumentError(absl::StrCat("no IP address: \"", text, "\"")); };
  Address address;
  absl::string_view rest = text;
  std::optional<absl::string_view> port;
  std::optional<absl::string_view> udp_port;
  if (const size_t at = rest.find('@'); at != absl::string_view::npos) {
    udp_port = rest.substr(at + 1);
    rest = rest.substr(0, at);
  }
  absl::string_view ip = rest;
  if (!rest.empty() && rest[0] == '[') {
    const size_t close = rest.find(']');
    if (close == absl::string_view::npos) return bad();
    ip = rest.substr(1, close - 1);
    if (close + 1 < rest.size()) {
      if (rest[close + 1] != ':') return bad();
      port = rest.substr(close + 2);
    }
    if (!ParseIpv6(ip, &address.ip)) return bad();
  } else if (std::count(rest.begin(), rest.end(), ':') > 1) {
    if (!ParseIpv6(rest, &address.ip)) return bad();
  } else {
    const size_t colon = rest.find(':');
    if (colon != absl::string_view::npos) {
      ip = rest.substr(0, colon);
      port = rest.substr(colon + 1);
    }
    address.ip[10] = address.ip[11] = 0xff;
    if (!ParseIpv4(ip, address.ip.data() + kIpv4Offset)) return bad();
  }
  if (!ParsePort(port, &address.port) || !ParsePort(udp_port, &address.udp_port)) {
    return absl::InvalidArgumentError(absl::StrCat("no port in 0 to 65535: \"", text, "\""));
  }
  return address;
}

std::string Address::ToString() const {
  std::string text;
  if (is_ipv4()) {
    text = absl::StrCat(ip[12], ".", ip[13], ".", ip[14], ".", ip[15]);
    if (port != 0) absl::StrAppend(&text, ":", port);
  } else {
    text = port == 0 ? FormatIpv6(ip) : absl::StrCat("[", FormatIpv6(ip), "]:", port);
  }
  if (udp_port != 0) absl::StrAppend(&text, "@", udp_port);
  return text;
}

bool Address::is_ipv4() const {
  static constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(ip.data(), kMapped.data(), kMapped.size()) == 0;
}

bool Address::is_unspecified() const {
  return std::all_of(ip.begin() + (is_ipv4() ? kIpv4Offset : 0), ip.end(), [](uint8_t byte) { return byte == 0; });
}

bool Address::is_loopback() const {
  if (is_ipv4()) return ip[kIpv4Offset] == 127;
  return ip.back() == 1 && std::all_of(ip.begin(), ip.end() - 1, [](uint8_t byte) { return byte == 0; });
}

bool Address::is_link_local() const { return ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80; }

bool Address::is_multicast() const { return is_ipv4() ? ip[12] >> 4 == 0xe : ip[0] == 0xff; }

const char* ToString(CompletionStatus status) {
  switch (status) {
    case CompletionStatus::kSuccess:
      return "success";
    case CompletionStatus::kLocalLength:
      return "local length";
    case CompletionStatus::kLocalQpOperation:
      return "local queue pair operation";
    case CompletionStatus::kLocalProtection:
      return "local protection";
    case CompletionStatus::kFlushed:
      return "flushed";
    case CompletionStatus::kWindowBind:
      return "window bind";
    case CompletionStatus::kBadResponse:
      return "bad response";
    case CompletionStatus::kLocalAccess:
      return "local access";
    case CompletionStatus::kRemoteInvalidRequest:
      return "remote invalid request";
    case CompletionStatus::kRemoteAccess:
      return "remote access";
    case CompletionStatus::kRemoteOperation:
      return "remote operation";
    case CompletionStatus::kRetryExceeded:
      return "retry exceeded";
    case CompletionStatus::kRnrRetryExceeded:
      return "receiver-not-ready retry exceeded";
    case CompletionStatus::kRemoteAborted:
      return "remote aborted";
    case CompletionStatus::kFatal:
      return "fatal";
    case CompletionStatus::kGeneral:
      return "general";
  }
  return "unknown";
}

const char* ToString(QueuePairState state) {
  switch (state) {
    case QueuePairState::kReset:
      return "Reset";
    case QueuePairState::kInit:
      return "Init";
    case QueuePairState::kReadyToReceive:
      return "ReadyToReceive";
    case QueuePairState::kReadyToSend:
      return "ReadyToSend";
    case QueuePairState::kError:
      return "Error";
  }
  return "unknown";
}

}  // namespace tokamak::verbs
