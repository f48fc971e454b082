// The baselines of a pull, measured in the same run: one TCP stream, a Redis GET, and memcpy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace tokamak::bench {

// Something that brings `size` bytes here, again and again.
class Contender {
 public:
  virtual ~Contender() = default;
  virtual std::string name() const = 0;

  // Gets ready for objects of `size` bytes; what it makes is not timed.
  virtual absl::Status Prepare(uint64_t size) = 0;

  // Brings one, or several at once; returns how long each took, in seconds.
  virtual absl::StatusOr<double> Fetch() = 0;

  // Processor time of all who took part in what was fetched, in seconds for each object; 0: it is
  // not known.
  virtual double ProcessorTime() const { return 0; }
};

// A small request and a reply of `size` over one TCP connection on loopback, from another process
// (TcpPeer), into memory that was touched before.
absl::StatusOr<std::unique_ptr<Contender>> StartTcpStream();

// GET by hiredis from a private Redis in `folder`, over TCP or over its Unix socket;
// `pipeline` of them at once.
enum class RedisOver { kTcp, kUnixSocket };
absl::StatusOr<std::unique_ptr<Contender>> StartRedisGet(const std::string& folder, RedisOver over = RedisOver::kTcp,
                                                         uint32_t pipeline = 1);

// memcpy between two buffers that were touched before.
std::unique_ptr<Contender> MakeMemcpy();

}  // namespace tokamak::bench
