// Backend gives the conformance tests a directory: a loop that is run, two clients that share one
// directory, and trouble.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "lib/base/event_loop.h"
#include "lib/directory/directory.h"
#include "lib/directory/local.h"

namespace tokamak::directory {

// Deletions that have ended and are remembered: so few that tests come to the bound.
constexpr size_t kFewTombstones = 32;
inline LocalOptions WithFewTombstones() {
  LocalOptions options;
  options.tombstones = kFewTombstones;
  return options;
}

class Backend {
 public:
  virtual ~Backend() = default;

  virtual base::EventLoop& loop() = 0;

  // Runs the loop until `done` says so or `limit` has passed; returns what it said last.
  virtual bool RunUntil(const std::function<bool()>& done, base::Duration limit) = 0;

  // How much later than promised something may come, because the machine is busy: nothing in
  // virtual time.
  virtual base::Duration tardiness() const = 0;

  // One directory as seen by two nodes.
  virtual Directory& here() = 0;
  virtual Directory& there() = 0;

  // Drops the client of here(), with what it was asked.
  virtual void DropHere() = 0;

  // The directory forgets everything.
  virtual void Restart() = 0;

  // For how long a directory that has just begun cannot know who holds what.
  virtual base::Duration recovery() const { return base::Seconds(10); }

  // How many may join by one client.
  virtual size_t most_nodes() const { return kMaxNodes; }

  // Nothing reaches the directory until Heal. For directories that can be out of reach.
  virtual void CutOff() {}
  virtual void Heal() {}
};

struct BackendCase {
  std::string name;
  std::function<std::unique_ptr<Backend>()> make;
};
inline void PrintTo(const BackendCase& backend, std::ostream* out) { *out << backend.name; }

std::unique_ptr<Backend> MakeLocalBackend();
std::unique_ptr<Backend> MakeRemoteBackend();
std::unique_ptr<Backend> MakeTransportBackend();

}  // namespace tokamak::directory
