// AdaptivePolicy learns which protocol moves objects of a size fastest from a peer, from the pulls
// themselves.
//
// A pull uses the protocol with the least known time for its size, or that of a table if none is
// known. A pull that uses another protocol, to learn its time, explores.
//
// Sizes fall into classes, two for each doubling. Each class and protocol has a mean size and a
// mean time; times of other sizes are interpolated between classes, so that a threshold may lie
// within one. A new pull counts for a sixteenth of a mean at least, an exploring one for a sixth,
// and for more if the mean is old. When times differ much from the expected ones, one after the
// other, the link has changed, and all means of that peer become worth one pull.
//
// Law: at most one in kPullsForOne of the pulls of each class from a peer explores.
//
// Law: exploring takes at most one kTimeForOne-th of the time of all pulls; a pull that takes
// longer than expected is worked off before the next one from that peer may explore. So exploration
// is spread over all pulled sizes, in the same proportion.
//
// From one peer one pull explores at a time. Memory is allocated only for a new peer. One owner,
// one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "lib/base/random.h"
#include "lib/base/time.h"
#include "lib/transport/object_access.h"
#include "lib/transport/policy/policy.h"

namespace tokamak::transport {

// Most known peers; beyond that, the one pulled from least recently is forgotten. Each takes some 5
// KB.
constexpr size_t kMaxLearnedPeers = 512;

constexpr int32_t kPullsForOne = 50;
constexpr int64_t kTimeForOne = 100;

// Most saved-up explorations of a class: pulls that might have explored and did not.
constexpr int32_t kMaxSavedExplorations = 2;

class AdaptivePolicy final {
 public:
  using Ip = std::array<uint8_t, 16>;  // a peer's address

  struct Choice {
    Protocol protocol = Protocol::kAuto;
    bool explores = false;
    base::Duration expected;  // of an exploring pull
  };

  // Outcome of a pull.
  struct End {
    bool ok = false;
    base::Duration took;
    // True if the time is typical of such pulls: they did not wait for something else, such as a
    // connection.
    bool typical = false;
  };

  // `table` decides while no time is known.
  AdaptivePolicy(Policy table, base::Random random);

  // Chooses for a pull of `size` bytes, at least one. The caller reports the outcome with Ended.
  Choice Choose(const Ip& peer, uint64_t size, base::Time now);

  // Returns whether this shows that the link has changed.
  bool Ended(const Ip& peer, uint64_t size, const Choice& choice, const End& end, base::Time now);

  size_t peers() const { return peers_.size(); }

 private:
  static constexpr size_t kProtocols = 3;
  static constexpr int kLeastExponent = 8;  // smaller sizes are in the first class
  static constexpr int kMostExponent = 30;  // larger ones in the last
  static constexpr int kClasses = 2 * (kMostExponent - kLeastExponent) + 1;

  // The means of one class and protocol.
  struct Cell {
    float weight = 0;  // pulls that they are worth; 0: unknown
    base::Time at;     // of the last one
    double size = 0;
    double seconds = 0;
  };

  struct Class {
    Cell cells[kProtocols];
    int32_t pulls_saved = 0;    // towards the next exploration: it takes kPullsForOne of them
    uint32_t next = 0;          // the protocol to explore next
    base::Duration time_saved;  // towards the next exploration: it takes kTimeForOne times its time
  };

  struct Peer {
    Class classes[kClasses];
    base::Time used_at;
    bool exploring = false;
    base::Duration owed;  // kTimeForOne times the excess of exploring pulls over their expected times
    int surprises = 0;    // recent; positive: longer than expected, negative: shorter
  };

  static size_t IndexOf(Protocol protocol) { return static_cast<size_t>(protocol) - 1; }
  static int ClassOf(uint64_t size);
  static std::optional<double> Estimate(const Peer& peer, Protocol protocol, uint64_t size);
  // The mean is worth at most `most` pulls.
  static void Learn(Peer& peer, uint64_t size, Protocol protocol, double seconds, float most, base::Time now);
  static bool Surprises(Peer& peer, double seconds, double expected);
  static void Account(Peer& peer, Class& own, const Choice& choice, const End& end);

  Peer& Find(const Ip& peer, base::Time now);
  Protocol Best(const Peer& peer, uint64_t size) const;
  Choice Explore(Peer& peer, uint64_t size, Protocol best);

  const Policy table_;
  base::Random random_;
  std::map<Ip, std::unique_ptr<Peer>> peers_;
};

}  // namespace tokamak::transport
