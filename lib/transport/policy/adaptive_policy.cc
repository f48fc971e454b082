#include "lib/transport/policy/adaptive_policy.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "lib/base/check.h"

namespace tokamak::transport {
namespace {

constexpr Protocol kAll[] = {Protocol::kEager, Protocol::kRead, Protocol::kWrite};

// Pulls that a mean is worth at most, to follow slow changes: of exploring pulls, which are few,
// and of others.
constexpr float kMostWeight = 6;
constexpr float kMostWeightOfMany = 16;

// Half-life of a mean without pulls.
constexpr base::Duration kMemory = base::Seconds(60);

// Classes to each side between whose means times are interpolated, a factor of four in size; with a
// mean at one side alone.
constexpr int kReach = 4;
constexpr int kReachOfOne = 1;

// In expected times: a pull that hung says little.
constexpr double kMostOfExpected = 2;

// A pull this much longer or shorter than expected surprises. Many in one direction show that the
// link has changed: each weighs as much as three others, as a change may touch some sizes alone;
// one in the other direction resets the count.
constexpr double kSurprise = 1.25;
constexpr int kSurpriseWeight = 3;
constexpr int kChangedAt = 8 * kSurpriseWeight;

// From kMuchSlower on, a protocol is explored in this part of its turns.
constexpr double kMuchSlower = 1.5;
constexpr double kTurnsOfMuchSlower = 0.1;

// Part of the pulls that may explore which do, so that a repetitive program varies them.
constexpr double kEagerness = 0.5;

// Saved up for exploring.
constexpr base::Duration kMostSavedTime = base::Seconds(3600);

}  // namespace

AdaptivePolicy::AdaptivePolicy(Policy table, base::Random random) : table_(std::move(table)), random_(random) {}

int AdaptivePolicy::ClassOf(uint64_t size) {
  int exponent = kLeastExponent;
  while (exponent < kMostExponent && size >> (exponent + 1) != 0) ++exponent;
  const uint64_t middle = (uint64_t{46341} << exponent) >> 15;  // times the square root of two
  return std::min(2 * (exponent - kLeastExponent) + (size >= middle ? 1 : 0), kClasses - 1);
}

AdaptivePolicy::Peer& AdaptivePolicy::Find(const Ip& peer, base::Time now) {
  const auto known = peers_.find(peer);
  if (known != peers_.end()) {
    known->second->used_at = now;
    return *known->second;
  }
  if (peers_.size() >= kMaxLearnedPeers) {
    peers_.erase(std::min_element(peers_.begin(), peers_.end(),
                                  [](const auto& a, const auto& b) { return a.second->used_at < b.second->used_at; }));
  }
  Peer& made = *peers_.emplace(peer, std::make_unique<Peer>()).first->second;
  made.used_at = now;
  return made;
}

// Interpolates between the means around `size`, or uses the only one.
std::optional<double> AdaptivePolicy::Estimate(const Peer& peer, Protocol protocol, uint64_t size) {
  const int own = ClassOf(size);
  const auto exact = static_cast<double>(size);
  const auto known = [&](int i) -> const Cell* {
    const bool is_class = i >= 0 && i < kClasses;
    return is_class && peer.classes[i].cells[IndexOf(protocol)].weight > 0 ? &peer.classes[i].cells[IndexOf(protocol)]
                                                                           : nullptr;
  };
  int down = own, up = own;
  while (down >= own - kReach && (known(down) == nullptr || known(down)->size > exact)) --down;
  while (up <= own + kReach && (known(up) == nullptr || known(up)->size < exact)) ++up;
  const bool below = down >= own - kReach, above = up <= own + kReach;
  if (below && above) {
    const Cell &from = *known(down), &to = *known(up);
    if (to.size <= from.size) return from.seconds;
    return from.seconds + (exact - from.size) / (to.size - from.size) * (to.seconds - from.seconds);
  }
  if (below && down >= own - kReachOfOne) return known(down)->seconds;
  if (above && up <= own + kReachOfOne) return known(up)->seconds;
  return std::nullopt;
}

// Returns the table's until something is known.
Protocol AdaptivePolicy::Best(const Peer& peer, uint64_t size) const {
  Protocol best = table_.Choose(size);
  std::optional<double> least = Estimate(peer, best, size);
  if (!least.has_value()) return best;
  for (const Protocol other : kAll) {
    const std::optional<double> time = Estimate(peer, other, size);
    if (!time.has_value() || *time >= *least) continue;
    best = other;
    least = time;
  }
  return best;
}

AdaptivePolicy::Choice AdaptivePolicy::Explore(Peer& peer, uint64_t size, Protocol best) {
  const Choice none{best, false, {}};
  Class& own = peer.classes[ClassOf(size)];
  if (peer.exploring || peer.owed > base::Duration() || own.pulls_saved < kPullsForOne) return none;
  const std::optional<double> known = Estimate(peer, best, size);
  if (!known.has_value() || !random_.Chance(kEagerness)) return none;
  if (kAll[own.next] == best) own.next = (own.next + 1) % kProtocols;
  const Protocol other = kAll[own.next];
  const double seconds = Estimate(peer, other, size).value_or(*known);
  if (seconds > *known * kMuchSlower && !random_.Chance(kTurnsOfMuchSlower)) {
    own.next = (own.next + 1) % kProtocols;
    return none;
  }
  const auto expected = base::Duration::Picoseconds(static_cast<int64_t>(seconds * 1e12));
  if (own.time_saved < expected * kTimeForOne) return none;  // when that is saved
  own.pulls_saved -= kPullsForOne;
  own.time_saved = own.time_saved - expected * kTimeForOne;
  own.next = (own.next + 1) % kProtocols;
  peer.exploring = true;
  return {other, true, expected};
}

AdaptivePolicy::Choice AdaptivePolicy::Choose(const Ip& peer, uint64_t size, base::Time now) {
  CHECK_GT(size, 0u);
  Peer& known = Find(peer, now);
  int32_t& saved = known.classes[ClassOf(size)].pulls_saved;
  saved = std::min<int32_t>(saved + 1, kPullsForOne * kMaxSavedExplorations);
  return Explore(known, size, Best(known, size));
}

void AdaptivePolicy::Learn(Peer& peer, uint64_t size, Protocol protocol, double seconds, float most, base::Time now) {
  Cell& cell = peer.classes[ClassOf(size)].cells[IndexOf(protocol)];
  const double age = std::max(0.0, (now - cell.at).seconds());
  const double faded = cell.weight * kMemory.seconds() / (kMemory.seconds() + age);
  cell.weight = std::min(static_cast<float>(faded), most - 1) + 1;
  cell.at = now;
  cell.size += (static_cast<double>(size) - cell.size) / cell.weight;
  cell.seconds += (seconds - cell.seconds) / cell.weight;
}

bool AdaptivePolicy::Surprises(Peer& peer, double seconds, double expected) {
  if (seconds > expected * kSurprise) {
    peer.surprises = std::max(peer.surprises, 0) + kSurpriseWeight;
  } else if (seconds * kSurprise < expected) {
    peer.surprises = std::min(peer.surprises, 0) - kSurpriseWeight;
  } else if (peer.surprises != 0) {
    peer.surprises -= peer.surprises > 0 ? 1 : -1;
  }
  if (std::abs(peer.surprises) < kChangedAt) return false;
  peer.surprises = 0;
  return true;
}

void AdaptivePolicy::Account(Peer& peer, Class& own, const Choice& choice, const End& end) {
  const base::Duration nothing;
  if (choice.explores) {
    peer.exploring = false;
    const base::Duration left = (choice.expected - end.took) * kTimeForOne;
    peer.owed = peer.owed + std::max(nothing, nothing - left);
    own.time_saved = own.time_saved + std::max(nothing, left);
  }
  const base::Duration gained = end.ok ? std::min(end.took, kMostSavedTime) : nothing;
  const base::Duration paid = std::min(gained, peer.owed);
  peer.owed = peer.owed - paid;
  own.time_saved = std::min(own.time_saved + gained - paid, kMostSavedTime);
}

bool AdaptivePolicy::Ended(const Ip& peer, uint64_t size, const Choice& choice, const End& end, base::Time now) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return false;  // forgotten meanwhile
  Peer& known = *found->second;
  Account(known, known.classes[ClassOf(size)], choice, end);
  if (!end.ok || !end.typical) return false;
  double seconds = end.took.seconds();
  const std::optional<double> expected = Estimate(known, choice.protocol, size);
  const bool changed = expected.has_value() && !choice.explores && Surprises(known, seconds, *expected);
  if (changed) {
    for (Class& each : known.classes) {
      for (Cell& cell : each.cells) cell.weight = std::min(cell.weight, 1.0f);
    }
  }
  if (expected.has_value()) seconds = std::min(seconds, *expected * kMostOfExpected);
  Learn(known, size, choice.protocol, seconds, choice.explores ? kMostWeight : kMostWeightOfMany, now);
  return changed;
}

}  // namespace tokamak::transport
