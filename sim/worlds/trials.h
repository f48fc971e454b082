// Trials are courses of events, each of which leads a life (life.h) to one place where a promise
// has been broken, or could be: a bound, a restart, the end of a node.
//
// Chance alone hardly ever comes there: a deletion has to be followed by more others than are
// remembered, say, while a node with a copy is gone. What happens on the way is drawn all the same,
// and around it the life goes on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "sim/worlds/life.h"

namespace tokamak::sim {

class Trials final {
 public:
  struct Trial {
    const char* name;
    uint32_t odds;                              // times WorldOptions::trial
    bool (*fits)(const WorldOptions& options);  // this life; none: any that is not calm
    void (*run)(Life& life);
  };

  static absl::Span<const Trial> All();

  // Of WorldOptions::trials.
  static uint32_t Named(const std::vector<std::string>& names);

  explicit Trials(Life& life) : life_(life) {}

  // Perhaps one of those that the life has.
  void MayRun();

  // Of puts that were told that nothing was stored: their ids are free, and can be put.
  static void PutWhatWasRefused(Life& life);

 private:
  Life& life_;
};

}  // namespace tokamak::sim
