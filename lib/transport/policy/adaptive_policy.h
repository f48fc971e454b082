// AdaptivePolicy learns which protocol moves objects of a size fastest from a peer, from the pulls
// themselves.
//
// A pull uses the protocol with the least known time, or a table's; one that uses another, to learn
// its time, explores. Sizes fall into classes, two for each doubling, with a mean size and time for
// each protocol; times between are interpolated. A new pull counts for a sixteenth of a mean at
// least, an exploring one for a sixth, and for more if the mean is old. After a row of times far
// from the expected ones the link has changed: all means of that peer become worth one pull.
//
// Law: at most one in kPullsForOne of the pulls of each class from a peer explores, one at a time.
// Law: exploring takes at most one kTimeForOne-th of the time of all pulls, in the same proportion
//      over all sizes; a pull longer than expected is worked off before the next one from that peer
//      may explore.
//
// Memory is allocated only for a new peer. One owner, one thread.
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

// Peers, of some 5 KB each; beyond, the one pulled from least recently is forgotten.
constexpr size_t kMaxLearnedPeers = 512;

constexpr int32_t kPullsForOne = 50;
constexpr int64_t kTimeForOne = 100;

// Explorations saved up by a class.
constexpr int32_t kMaxSavedExplorations = 2;

class AdaptivePolicy final {
 public:
  using Ip = std::array<uint8_t, 16>;  // a peer's address

  struct Choice {
    Protocol protocol = Protocol::kAuto;
    bool explores = false;
    base::Duration expected;  // of an exploring pull
  };

  struct End {
    bool ok = false;
    base::Duration took;
    // True if the time includes no wait, as for a connection.
    bool typical = false;
  };

  // `table` decides while no time is known.
  AdaptivePolicy(Policy table, base::Random random);

  // Chooses for `size` > 0 bytes; Ended takes the outcome.
  Choice Choose(const Ip& peer, uint64_t size, base::Time now);

  // Returns whether the link has changed.
  bool Ended(const Ip& peer, uint64_t size, const Choice& choice, const End& end, base::Time now);

  size_t peers() const { return peers_.size(); }

 private:
  static constexpr size_t kProtocols = kProtocolValues - 1;
  static constexpr int kLeastExponent = 8;  // first class
  static constexpr int kMostExponent = 30;  // last class
  static constexpr int kClasses = 2 * (kMostExponent - kLeastExponent) + 1;

  // Means of one class and protocol.
  struct Cell {
    float weight = 0;  // in pulls; 0: unknown
    base::Time at;     // of the last pull
    double size = 0;
    double seconds = 0;
  };

  struct Class {
    Cell cells[kProtocols];
    int32_t pulls_saved = 0;    // towards kPullsForOne
    uint32_t next = 0;          // protocol to explore
    base::Duration time_saved;  // towards kTimeForOne times the next exploration's
  };

  struct Peer {
    Class classes[kClasses];
    base::Time used_at;
    bool exploring = false;
    base::Duration owed;  // kTimeForOne times the excess of exploring pulls
    int surprises = 0;    // recent; positive: longer than expected, negative: shorter
  };

  static size_t IndexOf(Protocol protocol) { return static_cast<size_t>(protocol) - 1; }
  static int ClassOf(uint64_t size);
  static std::optional<double> Estimate(const Peer& peer, Protocol protocol, uint64_t size);
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
