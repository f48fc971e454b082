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
  // address=IP[+IP...]: one device each. Empty: DefaultAddress().
  std::vector<Address> addresses;
  // shm: through memory, for this machine only; the addresses need no interface.
  bool shared_memory = false;
  // pcap=FILE: into FILE.PID of each process.
  std::string pcap;
  // log: errors to standard error.
  bool log = false;
  // explain: commands as lines to standard error.
  bool explain = false;
  // counters: the devices' lines to standard error, at the process's end.
  bool counters = false;
  // loss=SHARE, corrupt=SHARE, delay=TIME, seed=NUMBER: of sent packets, for each device.
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

// Returns "lo" if there is none.
std::string InterfaceOf(const Address& address);

}  // namespace tokamak::verbs::kernel
