// A process's options for its devices: the environment variable TOKAMAK_VERBS, written by `tok
// verbs` or by hand.
//
//   TOKAMAK_VERBS=address=10.0.0.1,pcap=/tmp/packets
//
// Thread rule: none, pure functions, except for DefaultAddress.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/verbs/kernel/program/program_faults.h"
#include "lib/verbs/soft/fabrics/faulty_fabric.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::kernel {

constexpr char kOptionsVariable[] = "TOKAMAK_VERBS";

struct Options {
  // address=IP[+IP...]: one device at each. Empty: one at DefaultAddress().
  std::vector<Address> addresses;
  // shm: packets go through memory, to programs of this machine only; the addresses need no
  // interface.
  bool shared_memory = false;
  // pcap=FILE: the packets of each process go to FILE.PID.
  std::string pcap;
  // log: errors of ours go to standard error.
  bool log = false;
  // explain: each command to a device goes to standard error, as a line.
  bool explain = false;
  // counters: what each device carried goes to standard error, as a line, when the process ends.
  bool counters = false;
  // loss=SHARE, corrupt=SHARE, delay=TIME, seed=NUMBER: faults of packets that the process sends,
  // drawn for each device apart.
  soft::FabricFaults faults;
  // error-at=N[:STATUS], port-down=AFTER[:FOR].
  RequestFault request_fault;
  PortFault port_fault;

  // kInvalidArgument: an unknown word, or an invalid value.
  static absl::StatusOr<Options> Parse(absl::string_view text);
  std::string ToString() const;  // for Parse
};

// Returns this machine's address towards others; 127.0.0.1 if none.
Address DefaultAddress();

// Returns the name of the interface that has `address`; "lo" if none.
std::string InterfaceOf(const Address& address);

}  // namespace tokamak::verbs::kernel
