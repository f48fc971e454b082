#include "tests/support/hex.h"

#include "absl/strings/numbers.h"
#include "lib/base/check.h"

namespace tokamak::support {

std::vector<uint8_t> BytesOfHex(absl::string_view hex) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    const absl::string_view digits = hex.substr(i, 2);
    uint32_t byte = 0;
    CHECK(digits.size() == 2 && absl::SimpleHexAtoi(digits, &byte)) << "not in hexadecimal: " << hex;
    bytes.push_back(static_cast<uint8_t>(byte));
  }
  return bytes;
}

}  // namespace tokamak::support
