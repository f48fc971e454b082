#include "lib/node/copies/unregistered_copies.h"

#include <optional>
#include <vector>

namespace tokamak::node {

void UnregisteredCopies::Add(const base::ObjectVersion& version, base::Time until) {
  copies_[version] = until;
  if (!next_.has_value() || until < *next_) ExpireAt(until);
}

std::optional<base::Time> UnregisteredCopies::Until(const base::ObjectVersion& version) const {
  const auto found = copies_.find(version);
  if (found == copies_.end()) return std::nullopt;
  return found->second;
}

void UnregisteredCopies::ExpireAt(base::Time time) {
  next_ = time;
  expiry_ = loop_.RunAt(time, [this] { Expire(); });
}

void UnregisteredCopies::Expire() {
  next_.reset();
  std::optional<base::Time> next;
  std::vector<base::ObjectVersion> over;
  for (auto copy = copies_.begin(); copy != copies_.end();) {
    if (copy->second <= loop_.Now()) {
      over.push_back(copy->first);
      copy = copies_.erase(copy);
      continue;
    }
    if (!next.has_value() || copy->second < *next) next = copy->second;
    ++copy;
  }
  if (next.has_value()) ExpireAt(*next);
  for (const base::ObjectVersion& version : over) over_(version);
}

}  // namespace tokamak::node
