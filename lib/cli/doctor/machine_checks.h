// Checks of a machine for RDMA: each is a pure function from the machine's facts to a Finding.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/cli/doctor/finding.h"
#include "lib/cli/doctor/machine_facts.h"
#include "lib/cli/doctor/rdma_facts.h"

namespace tokamak::cli::doctor {

// Beside the store, a node locks buffers for messages: some 3 MiB for each busy connection, here
// for about twenty; and for each peer that is idle, connected both ways, the first windows
// (transport::EndpointOptions::first_slots).
constexpr uint64_t kLockedBuffers = 64 << 20;
constexpr uint64_t kLockedForIdlePeer = 2 * 4 * 16 * 1024;

// File descriptors of a daemon without peers: loops, devices and a few hundred programs.
constexpr uint64_t kOwnDescriptors = 256;

// Are the kernel's doors to verbs and to rdma_cm there?
// `by_tcp`: connections are made without rdma_cm (--cm tcp), here and below.
Finding CheckModules(const MachineFacts& machine, bool by_tcp = false);

// Is there any RDMA device? A device that is missing comes with how to get one.
Finding CheckDevices(const MachineFacts& machine, const std::vector<RdmaFacts>& devices);

// May /dev/infiniband be opened? `named`: the devices that were asked about, which must all be; the
// others are mentioned. Where none was, one that may be opened is enough.
Finding CheckPermission(const MachineFacts& machine, const std::vector<RdmaFacts>& devices, bool by_tcp = false,
                        const std::vector<std::string>& named = {});

// May a store of `store` bytes be locked, as registering it does? The kernel counts it for each of
// `devices` that it is registered with. And what `peers` take?
Finding CheckMemlock(const MachineFacts& machine, uint64_t store, size_t devices = 1, uint32_t peers = 0);

// May tokd have the descriptors that this many peers take, connected both ways? Connections take
// none, but with --cm tcp, where each queue pair of each device keeps a TCP connection.
Finding CheckDescriptors(const MachineFacts& machine, uint32_t peers, bool by_tcp, size_t devices = 1);

Finding CheckHugePages(const MachineFacts& machine, uint64_t store);

// Rxe devices outside of the first network namespace look healthy and swallow everything.
Finding CheckNetwork(const MachineFacts& machine, const std::vector<RdmaFacts>& devices);

// Does a software NIC's UDP socket get the `wanted` bytes?
Finding CheckUdpBuffers(const MachineFacts& machine, uint64_t wanted);

}  // namespace tokamak::cli::doctor
