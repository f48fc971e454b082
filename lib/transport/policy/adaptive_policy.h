// AdaptivePolicy learns which protocol moves objects of a size fastest from a peer, from the pulls
// themselves.
//
// A pull goes by the protocol that takes the least time for its size, as far as is known, and by a
// table where nothing is known. One that goes by another protocol, to learn what that takes,
// explores. Sizes fall into classes, two for each doubling. Of a class and protocol the mean size
// and the mean time are kept, and times of other sizes are interpolated between classes, so that a
// threshold may lie within one. A new pull counts for a sixteenth of a mean at least, one that
// explores for a sixth, and for more where the mean is old; where times differ much from what was
// expected, one after the other, the link has changed, and all means of that peer are as good as
// one pull.
//
// Law: of the pulls of each class from a peer at most one in kPullsForOne explores. Law: what
// explores takes at most one kTimeForOne-th of the time of all; where one takes longer than was
// expected, that is worked off before the next one from that peer may. So they are spread over all
// sizes that are pulled, in the same proportion. From one peer one explores at a time.
// No memory is allocated but for a peer that is new. One owner, one thread.
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

// Peers of which something is known; with more, the one that was pulled from least lately is
// forgotten. Each takes some 5 KB.
constexpr size_t kMaxLearnedPeers = 512;

constexpr int32_t kPullsForOne = 50;
constexpr int64_t kTimeForOne = 100;

// Pulls of a class that might have explored and did not; more are not saved up.
constexpr int32_t kMaxSavedExplorations = 2;

class AdaptivePolicy final {
 public:
  using Ip = std::array<uint8_t, 16>;  // a peer's address

  struct Choice {
    Protocol protocol = Protocol::kAuto;
    bool explores = false;
    base::Duration expected;  // of one that explores
  };

  // How a pull ended.
  struct End {
    bool ok = false;
    base::Duration took;
    // It says what such pulls take. Not those that waited for something else, as a connection.
    bool typical = false;
  };

  // `table` counts where nothing is known.
  AdaptivePolicy(Policy table, base::Random random);

  // For a pull of `size` bytes, at least one, that begins. Whoever takes the choice says how it
  // ended.
  Choice Choose(const Ip& peer, uint64_t size, base::Time now);

  // Returns whether this shows that the link has changed.
  bool Ended(const Ip& peer, uint64_t size, const Choice& choice, const End& end, base::Time now);

  size_t peers() const { return peers_.size(); }

 private:
  static constexpr size_t kProtocols = 3;
  static constexpr int kLeastExponent = 8;  // smaller sizes are of the first class
  static constexpr int kMostExponent = 30;  // larger ones of the last
  static constexpr int kClasses = 2 * (kMostExponent - kLeastExponent) + 1;

  // The means of one class and protocol.
  struct Cell {
    float weight = 0;  // pulls that they are worth; 0: nothing is known
    base::Time at;     // of the last one
    double size = 0;
    double seconds = 0;
  };

  struct Class {
    Cell cells[kProtocols];
    int32_t pulls_saved = 0;    // towards the next one that explores: kPullsForOne of them
    uint32_t next = 0;          // the protocol that is explored next
    base::Duration time_saved;  // kTimeForOne times what that may take
  };

  struct Peer {
    Class classes[kClasses];
    base::Time used_at;
    bool exploring = false;
    base::Duration owed;  // kTimeForOne times what pulls that explored took longer than expected
    int surprises = 0;    // of late: positive where pulls took longer than expected, negative for shorter
  };

  static size_t IndexOf(Protocol protocol) { return static_cast<size_t>(protocol) - 1; }
  static int ClassOf(uint64_t size);
  static std::optional<double> Estimate(const Peer& peer, Protocol protocol, uint64_t size);
  // The mean is worth `most` pulls at most.
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
