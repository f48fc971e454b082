// Reply is a Redis server's reply to one command.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tokamak::directory::redis {

struct Reply {
  enum class Kind : uint8_t { kNil, kText, kInteger, kArray, kError };
  Kind kind = Kind::kNil;
  std::string text;  // kText, kError
  int64_t integer = 0;
  std::vector<Reply> elements;  // kArray
};

using Command = std::vector<std::string>;

}  // namespace tokamak::directory::redis
