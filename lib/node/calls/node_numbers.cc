#include "lib/node/calls/node_numbers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "lib/base/codec.h"
#include "lib/base/text/host_port.h"

namespace tokamak::node {

namespace {

bool IsName(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_islower(static_cast<unsigned char>(c)) || absl::ascii_isdigit(static_cast<unsigned char>(c)) ||
           c == '_';
  });
}

bool IsPage(const std::string& page) { return page.empty() || base::HostPort::Parse(page).ok(); }

}  // namespace

std::vector<uint8_t> NodeNumbers::Encode(const NodeNumbers& numbers) {
  const size_t count = std::min(numbers.numbers.size(), kMaxNumbers);
  base::Writer writer;
  writer.Text(numbers.page);
  writer.Integer(static_cast<uint32_t>(count));
  for (size_t i = 0; i < count; ++i) {
    writer.Text(numbers.numbers[i].name);
    writer.Integer(numbers.numbers[i].value);
  }
  return writer.Take();
}

std::optional<NodeNumbers> NodeNumbers::Decode(absl::Span<const uint8_t> bytes) {
  base::Reader reader(bytes);
  NodeNumbers numbers;
  numbers.page = reader.Text(kMaxPage);
  numbers.numbers.resize(reader.Count(kMaxNumbers, sizeof(uint32_t) + sizeof(uint64_t)));
  bool named = true;
  for (NodeNumber& number : numbers.numbers) {
    number.name = reader.Text(kMaxName);
    number.value = reader.Integer<uint64_t>();
    named &= IsName(number.name);
  }
  if (!reader.Complete() || !named || !IsPage(numbers.page)) return std::nullopt;
  return numbers;
}

}  // namespace tokamak::node
