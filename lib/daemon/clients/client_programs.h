// ClientPrograms accounts for the daemon's resources by program and user: connections, and memory
// beside the store's (unread answers, incomplete messages, waiting requests).
//
// A program is a process, as of SO_PEERCRED. Programs hidden by our pid namespace share one account
// per user, with a user's bounds. A label lasts while its program has a connection.
// Law: no program or user exceeds its part, over all connections.
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

  // One connection's place until dropped; label() and share() live as long.
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

  // Enters a connection of `peer`; a program without a label gets `label`. kResourceExhausted: all
  // places, or the program's or user's, are taken; the text says which.
  absl::StatusOr<Place> Enter(const os::PeerCredentials& peer, const std::string& label);

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
