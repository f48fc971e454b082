#include "lib/daemon/clients/client_programs.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/base/check.h"

namespace tokamak::daemon {

ClientPrograms::~ClientPrograms() { CHECK_EQ(clients_, 0u) << "a connection outlives its program's account"; }

absl::StatusOr<ClientPrograms::Place> ClientPrograms::Enter(const os::PeerCredentials& peer, const std::string& label) {
  const bool is_shown = peer.pid != 0;
  const Place::Key key(peer.uid, peer.pid);
  const auto user = users_.find(peer.uid);
  const auto program = programs_.find(key);
  const auto is_full = [](const auto found, const auto end, size_t most) {
    return found != end && found->second.clients >= most;
  };
  if (is_shown && is_full(program, programs_.end(), bounds_.clients_of_program)) {
    return absl::ResourceExhaustedError(absl::StrCat("this program has ", bounds_.clients_of_program,
                                                     " connections to this tokd, and gets no more: share some"));
  }
  if (is_full(user, users_.end(), bounds_.clients_of_user)) {
    return absl::ResourceExhaustedError(absl::StrCat("programs of user ", peer.uid, " have ", bounds_.clients_of_user,
                                                     " connections to this tokd, and get no more: end some"));
  }
  if (clients_ >= bounds_.clients) {
    return absl::ResourceExhaustedError(
        absl::StrCat(bounds_.clients, " programs are connected to this tokd, and it takes no more: end some"));
  }
  User& of_user = users_.try_emplace(peer.uid, bounds_.memory_of_user).first->second;
  const uint64_t memory = is_shown ? bounds_.memory_of_program : bounds_.memory_of_user;
  Program& of_program = programs_.try_emplace(key, label, memory, &of_user.memory).first->second;
  ++of_user.clients;
  ++of_program.clients;
  ++clients_;
  return Place(this, key);
}

void ClientPrograms::Leave(const Place::Key& key) {
  const auto program = programs_.find(key);
  const auto user = users_.find(key.first);
  if (--program->second.clients == 0) programs_.erase(program);
  if (--user->second.clients == 0) users_.erase(user);
  --clients_;
}

uint64_t ClientPrograms::memory() const {
  uint64_t all = 0;
  for (const auto& [uid, user] : users_) all += user.memory.used();
  return all;
}

const std::string& ClientPrograms::Place::label() const { return programs_->programs_.at(program_).label; }

ProgramShare& ClientPrograms::Place::share() const { return programs_->programs_.at(program_).share; }

void ClientPrograms::Place::Leave() {
  if (programs_ != nullptr) std::exchange(programs_, nullptr)->Leave(program_);
}

}  // namespace tokamak::daemon
