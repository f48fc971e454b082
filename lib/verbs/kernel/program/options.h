// What a process is told about its devices: the environment variable TOKAMAK_VERBS, as `tok verbs`
// writes it, or somebody by hand.
//
//   TOKAMAK_VERBS=address=10.0.0.1,pcap=/tmp/packets
//
// Thread rule: none, pure functions, but for DefaultAddress.
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
  // address=IP[+IP...]: one device at each. None: one at DefaultAddress().
  std::vector<Address> addresses;
  // shm: packets go through memory to the programs of this machine, and to no others; the addresses
  // need not be of any interface.
  bool shared_memory = false;
  // pcap=FILE: the packets of each process go to FILE.PID.
  std::string pcap;
  // log: errors of ours go to standard error.
  bool log = false;
  // explain: each command to a device goes to standard error, as a line.
  bool explain = false;
  // counters: what each device carried goes to standard error, as a line, when the process ends.
  bool counters = false;
  // loss=SHARE, corrupt=SHARE, delay=TIME, seed=NUMBER: of what the process sends. Each device has
  // faults of its own.
  soft::FabricFaults faults;
  // error-at=N[:STATUS], port-down=AFTER[:FOR].
  RequestFault request_fault;
  PortFault port_fault;

  // kInvalidArgument: an unknown word, or a value that is none.
  static absl::StatusOr<Options> Parse(absl::string_view text);
  std::string ToString() const;  // which Parse understands
};

// The address that this machine takes to others, or 127.0.0.1 where it has none.
Address DefaultAddress();

// The name of the interface that has `address`; "lo" where none has.
std::string InterfaceOf(const Address& address);

}  // namespace tokamak::verbs::kernel
