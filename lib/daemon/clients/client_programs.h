// ClientPrograms keeps account of what the programs of this machine, and their users, take of the
// daemon: connections, and memory beside the store's (answers that are not read, messages that are
// not whole, requests that wait).
//
// A program is a process, as the kernel names it when it connects (SO_PEERCRED). One that our pid
// namespace does not show cannot be told from others like it: these have what a user has, all of a
// user together. What a program calls itself counts once: while it has a connection it cannot
// become another by a new name.
// Law: no program, and no user, has more than its part, however many connections it makes.
// Thread rule: the control loop.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "lib/base/byte_budget.h"
#include "lib/daemon/clients/program_share.h"
#include "lib/os/sockets/unix_socket.h"

namespace tokamak::daemon {

constexpr size_t kMaxClients = 1280;
constexpr size_t kMaxClientsOfUser = 1024;
constexpr size_t kMaxClientsOfProgram = 256;
static_assert(kMaxClientsOfProgram < kMaxClientsOfUser && kMaxClientsOfUser < kMaxClients, "others still get in");

constexpr uint64_t kMaxMemoryOfUser = 256 << 20;
constexpr uint64_t kMaxMemoryOfProgram = 64 << 20;
static_assert(2 * kMaxMemoryOfProgram <= kMaxMemoryOfUser, "nor does one program take all that its user has");
static_assert(kMaxMemoryOfProgram / 2 >= os::kMaxQueued, "one slow connection leaves half to the others");

class ClientPrograms final {
 public:
  struct Bounds {
    size_t clients = kMaxClients;
    size_t clients_of_user = kMaxClientsOfUser;
    size_t clients_of_program = kMaxClientsOfProgram;
    uint64_t memory_of_user = kMaxMemoryOfUser;
    uint64_t memory_of_program = kMaxMemoryOfProgram;
  };

  // One connection's. Dropping it gives it back. What it refers to lives as long.
  class Place final {
   public:
    Place() = default;
    Place(Place&& o) noexcept { *this = std::move(o); }
    Place& operator=(Place&& o) noexcept {
      Leave();
      programs_ = std::exchange(o.programs_, nullptr);
      program_ = o.program_;
      return *this;
    }
    ~Place() { Leave(); }

    const std::string& label() const;
    ProgramShare& share() const;

   private:
    friend class ClientPrograms;
    using Key = std::pair<uid_t, pid_t>;

    Place(ClientPrograms* programs, const Key& program) : programs_(programs), program_(program) {}
    void Leave();

    ClientPrograms* programs_ = nullptr;
    Key program_{};
  };

  explicit ClientPrograms(const Bounds& bounds) : bounds_(bounds) {}
  ~ClientPrograms();
  ClientPrograms(const ClientPrograms&) = delete;
  ClientPrograms& operator=(const ClientPrograms&) = delete;

  // A connection of `peer`, whose program is called `label` if it has no other yet.
  // kResourceExhausted: all places are taken, or this program's or user's; the text says which.
  absl::StatusOr<Place> Enter(const os::PeerCredentials& peer, const std::string& label);

  // That all of them have us hold.
  uint64_t memory() const;

 private:
  struct User {
    explicit User(uint64_t most) : memory(most) {}
    size_t clients = 0;
    base::ByteBudget memory;
  };
  struct Program {
    Program(std::string name, uint64_t most, base::ByteBudget* user) : label(std::move(name)), share(most, user) {}
    const std::string label;
    size_t clients = 0;
    ProgramShare share;
  };

  void Leave(const Place::Key& key);

  const Bounds bounds_;
  size_t clients_ = 0;
  std::map<uid_t, User> users_;
  std::map<Place::Key, Program> programs_;
};

}  // namespace tokamak::daemon
