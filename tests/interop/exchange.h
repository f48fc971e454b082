// An Exchange tries every operation of RDMA verbs between two programs, each of which may have any
// device.
//
// One end leads: it asks the other, message by message (exchange_message.h), to prepare memory,
// moves bytes by the operation that is tried, and has them compared by whoever got them. Then the
// other end leads through the same. Sizes lie around the path MTU and its multiples, and up to
// ExchangeOptions::largest; some go many at a time. All bytes are compared, and those behind them
// must not have changed.
//
// A difference ends it with a status that names operation, size and byte. Features that a device
// lacks (Limits) are skipped, and counted nowhere.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/verbs/types.h"
#include "tests/interop/exchange_message.h"
#include "tests/interop/link.h"
#include "tests/interop/pieces.h"

namespace tokamak::interop {

constexpr uint32_t kMaxInFlight = 16;           // requests of one step
constexpr uint32_t kInFlightBytes = 16 * 1024;  // of each of them
constexpr uint32_t kMinLargest = 4096;
constexpr uint32_t kMaxLargest = 64 << 20;

struct ExchangeOptions {
  uint32_t largest = 1 << 20;  // bytes of one request, at most kMaxLargest
};

struct Tally {
  uint64_t requests = 0;
  uint64_t bytes = 0;
};

struct ExchangeReport {
  uint32_t path_mtu = 0;
  std::map<verbs::Opcode, Tally> led;  // what this end asked for, all of it compared
};

// "SEND 40 (1.2 MiB), READ ...".
std::string ToString(const ExchangeReport& report);
const char* NameOf(verbs::Opcode opcode);

// One operation, tried with `count` requests of `length` bytes at once.
struct Step {
  verbs::Opcode opcode = verbs::Opcode::kSend;
  uint32_t length = 0;
  uint32_t count = 1;
};
std::vector<Step> Plan(uint32_t path_mtu, uint32_t largest, bool immediate, bool atomics);

class Exchange final {
 public:
  // Makes `link`, whose depth is to be more than kMaxInFlight, ready. Before it is connected.
  static absl::StatusOr<std::unique_ptr<Exchange>> Prepare(Link& link, const ExchangeOptions& options);

  // Connected. The end that connected leads first; the connection is up when they return.
  absl::StatusOr<ExchangeReport> Lead();
  absl::StatusOr<ExchangeReport> Follow();

 private:
  Exchange(Link& link, const ExchangeOptions& options);

  // Messages. The receive for the next one is posted by PostHearing, behind those of the data that
  // comes before it.
  absl::Status Say(const Message& message);
  absl::StatusOr<Message> Hear();
  absl::Status PostHearing();
  absl::StatusOr<Message> Ask(const Message& question);
  absl::Status AskAbout(MessageKind kind, const Pieces& pieces, uint8_t flags = 0, uint64_t value = 0);
  Message Greeting() const;
  absl::Status TakeGreeting(const Message& hello);

  // The end that leads.
  absl::Status RunPlan();
  absl::Status Try(const Step& step);
  absl::Status TryPush(verbs::Opcode opcode, const Pieces& pieces);
  absl::Status TryRead(const Pieces& pieces);
  absl::Status TryAtomics(verbs::Opcode opcode, uint32_t count);
  absl::Status TryStaleCompare(uint64_t stale, uint64_t present);
  absl::Status PostPieces(verbs::SendRequest request, const Pieces& pieces);
  uint64_t OwnValue(uint32_t index) const;

  // Runs the end that follows, until the message `last` comes.
  absl::Status Obey(MessageKind last);
  Message Carry(const Message& question, MessageKind last);
  absl::Status PostExpected(const Pieces& pieces);
  absl::Status AwaitExpected(const Message& expected);

  Link& link_;
  const uint32_t largest_;
  std::vector<uint8_t> window_;  // the peer's to read and write
  std::vector<uint8_t> own_;     // where this end's requests take from and put to
  MessageBytes said_{};
  MessageBytes heard_{};
  std::unique_ptr<verbs::MemoryRegion> window_region_;
  std::unique_ptr<verbs::MemoryRegion> own_region_;
  std::unique_ptr<verbs::MemoryRegion> said_region_;
  std::unique_ptr<verbs::MemoryRegion> heard_region_;
  Message peer_;     // its greeting
  Message verdict_;  // a reply, over the messages that were expected last
  uint64_t next_seed_ = 1;
  ExchangeReport report_;
};

}  // namespace tokamak::interop
