// Backend is what the conformance suite knows of a device's world: devices that reach each other,
// and how time passes there.
//
// The suite states what an RDMA device promises and is the same for all. A new device adds a file
// to backends/ that defines Profiles(), and a test binary that links it with the suite. Each test
// makes a Backend of its own.
//
// Thread rule: a backend and the owners' loops belong to the thread of the test, and only Drive
// runs them. The devices may have threads of their own.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/base/time.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::conformance {

// The fault that a test provokes. A device may have more than one right answer.
enum class Fault {
  // Seen by the side that asked.
  kRemoteKey,         // no such rkey, or it is dead, or belongs to another protection domain
  kRemoteBounds,      // the range leaves the region
  kRemoteRight,       // the region does not allow it
  kQueuePairRight,    // the peer's queue pair does not allow it
  kRemoteAlignment,   // an atomic whose address is no multiple of 8
  kLocalKey,          // a source or sink that the lkey does not cover
  kLocalRight,        // a sink that may not be written
  kPeerReceiveKey,    // the receive that the message met has an lkey that does not cover its memory
  kPeerReceiveShort,  // the receive that the message met is shorter than the message
  kNotReady,          // the peer posted no receive, for long
  kPeerVanished,      // the peer does not answer any more
  kPeerInError,       // the peer's queue pair is in Error
  kTooManyReads,      // more READs at once than the peer serves
  // Seen by the side that is asked.
  kReceiveKey,    // the receive has an lkey that does not cover its memory
  kReceiveRight,  // the receive's memory may not be written
  kReceiveShort,  // the receive is shorter than the message
};
const char* ToString(Fault fault);

class Backend {
 public:
  virtual ~Backend() = default;

  // Two at least, three where that can be had. Two indexes may name the same device.
  virtual size_t device_count() const = 0;
  virtual Device& device(size_t index) = 0;

  // The loop of the device's owner: its completion queues and its connections live there.
  virtual base::EventLoop& loop(size_t index) = 0;

  // Lets time pass until `done` or until `limit` has passed. Returns what `done` said last. It is
  // asked on this thread before anything runs, and then whenever something has happened. With
  // nothing left to happen it may return early.
  virtual bool Drive(const std::function<bool()>& done, base::Duration limit) = 0;

  // How long a test waits for what must happen before it says that it did not.
  virtual base::Duration patience() const { return base::Seconds(30); }

  // How long a test looks on to see that nothing happens.
  virtual base::Duration quiet() const = 0;

  // How much later than computed a time-out may be seen.
  virtual base::Duration slack() const = 0;

  // How much earlier, for counting in ticks and rounding down.
  virtual base::Duration tick() const { return {}; }

  // How often a time may be measured until it is right. More than once where the machine can have a
  // measurement be wrong: an emulated processor whose timer interrupts come late counts its ticks
  // in bursts, and what is armed just before such a burst ends at once.
  virtual int measurements() const { return 1; }

  // Short time-outs that suit this world, so that a test with losses ends soon.
  virtual ReliabilityOptions reliability() const = 0;

  // An address of this world where no device is.
  virtual Address nowhere() const = 0;

  // Makes the device disappear without a word: what it sends is lost and so is what is sent to it.
  // Returns false where that cannot be arranged.
  virtual bool Vanish(size_t /*index*/) { return false; }

  // True when `status` is a right answer to `fault`.
  virtual bool Accepts(Fault fault, CompletionStatus status) const;

  // False where a request that cannot be sent has its queue pair miss the answers to those before
  // it, so that these never complete: a test then waits for them first.
  virtual bool HearsAnswersAfterALocalFault() const { return true; }

  // Returns the counters of the devices, for the text of a failure.
  virtual std::string Counters() const { return ""; }
};

// A world to run the whole suite in.
struct Profile {
  std::string name;  // letters, digits and _
  std::function<absl::StatusOr<std::unique_ptr<Backend>>()> make;
  bool lossy = false;  // packets get lost: times are not to be held against it
};

// Defined by the one file of backends/ that a binary links.
std::vector<Profile> Profiles();

}  // namespace tokamak::verbs::conformance
