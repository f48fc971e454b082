// NicPeer is another process with a NicEnd, which listens, accepts queue pairs and, on request,
// echoes what it receives.
//
// Thread rule: one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/os/file_descriptor.h"
#include "lib/verbs/types.h"
#include "tests/bench/nic_end.h"

namespace tokamak::bench {

// The peer's arena, as a connected queue pair may write and read it.
struct RemoteArena {
  uint64_t address = 0;
  uint32_t rkey = 0;
};

class NicPeer final {
 public:
  // Forks: while this process has one thread. The other one ends with this object, and with this
  // process. Its NIC is to be on `address`, its arena has `arena` bytes, touched before.
  static absl::StatusOr<std::unique_ptr<NicPeer>> Start(const verbs::Address& address, uint64_t arena);
  ~NicPeer();
  NicPeer(const NicPeer&) = delete;
  NicPeer& operator=(const NicPeer&) = delete;

  // The other process opens its NIC; Close ends that.
  absl::Status Open(const Setting& setting);
  absl::Status Close();

  // Memory of the other process.
  absl::StatusOr<MemoryUse> Memory();

  // Connects as many queue pairs of `end` as the setting says, a few at a time. Runs its loop.
  absl::StatusOr<RemoteArena> Connect(NicEnd& end, const Setting& setting);

 private:
  NicPeer(os::FileDescriptor socket, pid_t process, const verbs::Address& address)
      : socket_(std::move(socket)), process_(process), address_(address) {}

  struct Order;
  struct Reply;
  static void Serve(int fd, const verbs::Address& address, uint64_t arena);
  static Reply ServeOpened(int fd, const verbs::Address& address, const Setting& setting, absl::Span<uint8_t> arena);
  absl::StatusOr<MemoryUse> Ask(const Order& order);

  os::FileDescriptor socket_;
  const pid_t process_;
  const verbs::Address address_;
};

}  // namespace tokamak::bench
