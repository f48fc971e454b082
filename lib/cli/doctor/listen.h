// `tok doctor --listen`: waits for the doctors of other hosts once its own device is found healthy.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "lib/cli/doctor/probe.h"

namespace tokamak::cli::doctor {

constexpr uint16_t kDoctorPort = 7099;

// The command that the other host is to run, for a doctor that listens at `address`; in capitals
// what is its own.
std::string AskingCommand(const std::string& device, const Opening& opening, const verbs::Address& address);

// Lends objects to peers until SIGINT or SIGTERM, at the device's address and this port (0: the
// device chooses one). Says on standard error when it is ready: the report has standard output to
// itself. `netdev_mtu`: bytes, reported to peers. An error: it could not begin.
absl::Status Listen(const std::string& device, const Opening& opening, uint16_t port, uint32_t netdev_mtu);

}  // namespace tokamak::cli::doctor
