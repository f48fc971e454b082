// Which program a test starts where it needs a Redis server: redis-server, or valkey-server.
#pragma once

#include <string>

namespace tokamak::directory::redis {

// The program of TOKAMAK_REDIS, "redis" or "valkey"; unless that is set, Redis's if it is
// installed, else Valkey's. With --sentinel either is a Sentinel.
std::string RedisProgram();

}  // namespace tokamak::directory::redis
