#include "tokamak/object_id.h"

namespace tokamak {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// MurmurHash3's finaliser: every input bit moves every output bit.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccd;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53;
  return x ^ (x >> 33);
}

// FNV-1a from `start`, mixed.
uint64_t Hash(std::string_view name, uint64_t start) {
  uint64_t hash = 0xcbf29ce484222325 ^ Mix(start);
  for (const char c : name) hash = Mix((hash ^ static_cast<uint8_t>(c)) * 0x100000001b3);
  return Mix(hash ^ name.size());
}

}  // namespace

std::optional<ObjectId> ObjectId::FromHex(std::string_view hex) {
  if (hex.size() != 2 * kSize) return std::nullopt;
  std::array<uint8_t, kSize> bytes;
  for (size_t i = 0; i < kSize; ++i) {
    const int high = HexDigit(hex[2 * i]);
    const int low = HexDigit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return ObjectId(bytes);
}

ObjectId ObjectId::FromName(std::string_view name) {
  std::array<uint8_t, kSize> bytes;
  for (size_t part = 0; part * 8 < kSize; ++part) {
    const uint64_t hash = Hash(name, part + 1);
    for (size_t i = 0; i < 8 && part * 8 + i < kSize; ++i) bytes[part * 8 + i] = static_cast<uint8_t>(hash >> (8 * i));
  }
  return ObjectId(bytes);
}

std::string ObjectId::ToHex() const {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * kSize);
  for (const uint8_t byte : bytes_) {
    hex.push_back(kDigits[byte >> 4]);
    hex.push_back(kDigits[byte & 15]);
  }
  return hex;
}

}  // namespace tokamak
