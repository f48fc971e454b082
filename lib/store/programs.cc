#include "lib/store/programs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/base/check.h"

namespace tokamak::store {

void Programs::Join(Owner who, const std::string& label) {
  if (label.empty()) return;
  std::unique_ptr<Account>& account = accounts_[label];
  if (account == nullptr) {
    account = std::make_unique<Account>();
    account->usage.label = label;
  }
  ++account->owners;
  CHECK(members_.emplace(who, account.get()).second) << "an owner belongs to two programs";
}

void Programs::Leave(Owner who) {
  limits_.erase(who);
  const auto it = members_.find(who);
  if (it == members_.end()) return;
  Account& account = *it->second;
  members_.erase(it);
  --account.owners;
  DropIfUnused(account);
}

std::optional<uint64_t> Programs::LeftOf(Owner who) const {
  const auto it = limits_.find(who);
  if (it == limits_.end()) return std::nullopt;
  return it->second.bytes - std::min(it->second.bytes, it->second.held);
}

void Programs::AddPinned(Owner who, uint64_t bytes) {
  Of(who).usage.pinned_bytes += bytes;
  AddHeld(who, bytes);
}

void Programs::RemovePinned(Owner who, uint64_t bytes) {
  Of(who).usage.pinned_bytes -= bytes;
  AddHeld(who, -bytes);
}

Programs::Account& Programs::Of(Owner who) {
  const auto it = members_.find(who);
  return it == members_.end() ? nameless_ : *it->second;
}

void Programs::RemoveObject(Account& account) {
  --account.objects;
  DropIfUnused(account);
}

void Programs::RemoveQuarantined(Account& account, uint64_t bytes) {
  account.usage.quarantined_bytes -= bytes;
  DropIfUnused(account);
}

void Programs::DropIfUnused(Account& account) {
  if (account.owners != 0 || account.objects != 0 || account.usage.quarantined_bytes != 0) return;
  if (&account != &nameless_) accounts_.erase(account.usage.label);
}

std::vector<OwnerUsage> Programs::usage() const {
  std::vector<OwnerUsage> all = {nameless_.usage};
  OwnerUsage ended;
  ended.ended = true;
  for (const auto& [label, account] : accounts_) {
    if (account->owners != 0 || account->usage.quarantined_bytes != 0) {
      all.push_back(account->usage);
    } else {
      ended += account->usage;
    }
  }
  all.push_back(ended);
  all.erase(std::remove_if(all.begin(), all.end(), [](const OwnerUsage& one) { return one.total_bytes() == 0; }),
            all.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const OwnerUsage& a, const OwnerUsage& b) { return a.total_bytes() > b.total_bytes(); });
  return all;
}

}  // namespace tokamak::store
