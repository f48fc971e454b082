// World is a life of a cluster (life.h), drawn from a seed: programs put, get and delete the same
// few ids again and again while nodes stand still for longer than their leases, lose their way to
// the directory or their power, and the network loses packets. Trials (trials.h) lead it to places
// where chance would not come. Then all is healed, and the history (history.h) is judged.
//
// The same seed gives the same life, to the last packet: trace_hash() says whether it did.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/random.h"
#include "sim/worlds/history.h"
#include "sim/worlds/life.h"
#include "sim/worlds/trials.h"
#include "sim/worlds/world_options.h"

namespace tokamak::sim {

class World final {
 public:
  explicit World(const WorldOptions& options);

  // Lives, heals, and returns what was wrong, in words.
  std::vector<std::string> Run();

  const History& history() const { return life_.history; }
  uint64_t trace_hash() { return life_.cluster().hash.hash(); }

 private:
  void Act();
  void Chase();
  void FollowUp(uint32_t deleter, const std::string& id);
  void Look();
  void Crowd();
  void Flicker();
  void Blackout();
  void DropSome();
  void Trouble();
  void Judge();
  void Finale();

  const WorldOptions options_;
  Life life_;
  base::Random& random_;  // the life's
  Trials trials_;
};

}  // namespace tokamak::sim
