// Plan says what a run measures: who gets how much from whom, by which means, and when it is
// enough.
//
// It follows from the settings and the number of ranks alone, so that every rank has the same one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/base/random.h"
#include "lib/base/time.h"
#include "tests/bench/cluster/statistics.h"

namespace tokamak::bench {

enum class Pattern {
  kOneToOne,   // rank 1 gets from rank 0; others do nothing
  kOneToMany,  // every other rank gets an object of its own from rank 0, all at once
  kManyToOne,  // rank 0 gets an object from every other rank, all at once
  kAllToAll,   // every rank gets an object from every other rank, all at once
};

const char* ToString(Pattern pattern);  // "one-to-one"
absl::StatusOr<Pattern> ParsePattern(absl::string_view text);

// One object on its way.
struct Edge {
  uint32_t from = 0;
  uint32_t to = 0;
};

// The transfers between at least two ranks, those into one rank ordered by their source.
std::vector<Edge> EdgesOf(Pattern pattern, uint32_t ranks);

// A way to move objects, as results name it.
struct Contender {
  std::string protocol;  // eager, read, write, policy or socket
  std::string variant;   // how memory is registered, or which socket
};

struct Case {
  Pattern pattern = Pattern::kOneToOne;
  uint64_t size = 0;     // bytes of each object
  size_t contender = 0;  // index
};

struct Plan {
  std::vector<Contender> contenders;
  std::vector<Case> cases;  // in the order in which they run
  bool keep = false;        // the objects of a case are the same in all repetitions
  uint32_t warm_up = 2;     // repetitions that are not counted
  StopRule stop;
  base::Duration timeout = base::Seconds(60);  // of one object
  uint64_t seed = 1;
};

// All combinations, in an order drawn from `random`.
std::vector<Case> ShuffledCases(const std::vector<Pattern>& patterns, const std::vector<uint64_t>& sizes,
                                size_t contenders, base::Random random);

// The most bytes of objects that one rank holds at a time: what it gives, and what it gets.
uint64_t MostBytesOfARank(const std::vector<Case>& cases, uint32_t ranks);

}  // namespace tokamak::bench
