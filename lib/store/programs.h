// Programs keeps account of who holds the memory of the store: of each program, the bytes that it
// has not sealed, those that it pins, those that are kept because it created them, and those in
// quarantine since it may still write there.
//
// A program is a label: owners of one label count together. Owners without a label are the node
// itself (its transfers, the gets that wait) and have one account in common.
// Law: what all accounts say together is what the objects say.
// Not thread-safe: the store's loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "lib/store/types.h"

namespace tokamak::store {

class Programs final {
 public:
  // The address is stable while an owner or an object of the program is there, or memory is held
  // back from it.
  struct Account {
    OwnerUsage usage;
    uint64_t owners = 0;
    uint64_t objects = 0;  // that it created
  };

  Programs() = default;
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;

  // `who` belongs to the program of that name from now on. One without a name need not join.
  void Join(Owner who, const std::string& label);
  // `who` has ended and holds nothing any more.
  void Leave(Owner who);

  Account& Of(Owner who);
  const Account& Of(Owner who) const { return const_cast<Programs*>(this)->Of(who); }

  // `who` may itself hold at most this much, unsealed and pinned together, whatever its program
  // may.
  void Limit(Owner who, uint64_t bytes) { limits_[who].bytes = bytes; }
  // Of an owner with a limit: what is left of it.
  std::optional<uint64_t> LeftOf(Owner who) const;
  bool limited() const { return !limits_.empty(); }

  // What `who` has not sealed became more, or what it pins; or less.
  void AddUnsealed(Owner who, uint64_t bytes) { AddHeld(who, bytes); }
  void RemoveUnsealed(Owner who, uint64_t bytes) { AddHeld(who, -bytes); }
  void AddPinned(Owner who, uint64_t bytes);
  void RemovePinned(Owner who, uint64_t bytes);

  // An object of that program is there, or is gone.
  void AddObject(Account& account) { ++account.objects; }
  void RemoveObject(Account& account);

  // Memory is held back from that program, or no longer.
  void AddQuarantined(Account& account, uint64_t bytes) { account.usage.quarantined_bytes += bytes; }
  void RemoveQuarantined(Account& account, uint64_t bytes);

  // Of all that hold something, the one that holds most first. Programs that have ended are one
  // together.
  std::vector<OwnerUsage> usage() const;

 private:
  struct OwnLimit {
    uint64_t bytes = 0;
    uint64_t held = 0;
  };

  void DropIfUnused(Account& account);
  // Wraps around for less.
  void AddHeld(Owner who, uint64_t bytes) {
    if (limits_.empty()) return;
    if (const auto it = limits_.find(who); it != limits_.end()) it->second.held += bytes;
  }

  Account nameless_;
  absl::btree_map<std::string, std::unique_ptr<Account>> accounts_;
  absl::btree_map<Owner, Account*> members_;
  absl::btree_map<Owner, OwnLimit> limits_;
};

}  // namespace tokamak::store
