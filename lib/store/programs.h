// Programs counts, for each program, the bytes of the store that it has not sealed, that it pins,
// that are kept because it created them, and that are in quarantine because it may still write
// there.
//
// A program is a label, shared by owners. Owners without one are the node itself, one account.
// Law: the accounts together equal the objects.
// Thread rule: the store's loop.
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
  // At a stable address while the program has an owner, an object or quarantined memory.
  struct Account {
    OwnerUsage usage;
    uint64_t owners = 0;
    uint64_t objects = 0;  // created by the program
  };

  Programs() = default;
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;

  // An owner without a label need not join.
  void Join(Owner who, const std::string& label);
  // `who` has ended and holds nothing.
  void Leave(Owner who);

  Account& Of(Owner who);
  const Account& Of(Owner who) const { return const_cast<Programs*>(this)->Of(who); }

  // Limits `who` itself, unsealed and pinned together.
  void Limit(Owner who, uint64_t bytes) { limits_[who].bytes = bytes; }
  // Returns nothing if there is no limit.
  std::optional<uint64_t> LeftOf(Owner who) const;
  bool limited() const { return !limits_.empty(); }

  void AddUnsealed(Owner who, uint64_t bytes) { AddHeld(who, bytes); }
  void RemoveUnsealed(Owner who, uint64_t bytes) { AddHeld(who, -bytes); }
  void AddPinned(Owner who, uint64_t bytes);
  void RemovePinned(Owner who, uint64_t bytes);

  void AddObject(Account& account) { ++account.objects; }
  void RemoveObject(Account& account);

  void AddQuarantined(Account& account, uint64_t bytes) { account.usage.quarantined_bytes += bytes; }
  void RemoveQuarantined(Account& account, uint64_t bytes);

  // Returns the largest first, without empty ones. Ended programs are one account.
  std::vector<OwnerUsage> usage() const;

 private:
  struct OwnLimit {
    uint64_t bytes = 0;
    uint64_t held = 0;
  };

  void DropIfUnused(Account& account);
  // Modulo 2^64: a negative number subtracts.
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
