#include "lib/cli/verbs/command.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/base/text/printable.h"
#include "lib/base/units.h"
#include "lib/cli/common/output.h"
#include "lib/cli/verbs/program_file.h"
#include "lib/cli/verbs/shared_object.h"

namespace tokamak::cli::verbs {

using tokamak::verbs::Address;
using tokamak::verbs::kernel::kOptionsVariable;
using tokamak::verbs::kernel::Options;
using tokamak::verbs::kernel::PortFault;
using tokamak::verbs::kernel::RequestFault;

namespace {

constexpr char kHelp[] =
    "run an RDMA program over the software NIC: no RDMA hardware, kernel module or privileges are needed";

constexpr char kFooter[] =
    "Example:\n"
    "  tok verbs --address 127.0.0.1 -- ib_write_bw &\n"
    "  tok verbs --address 127.0.0.2 --loss 1% -- ib_write_bw 127.0.0.1\n"
    "Programs of one machine may share an address, and are then as one host to others.\n"
    "tok becomes the command, so the exit code is the command's; 127: there is none, 2: wrong flags.\n"
    "What is statically linked, or gets more rights than you have (setuid), is not reached; what is linked with musl "
    "is refused.";

Address Next(Address address) {
  for (size_t i = address.ip.size(); i-- > 0;) {
    if (++address.ip[i] != 0) break;
  }
  return address;
}

absl::Status Named(const char* flag, const absl::Status& status) {
  return status.ok() ? status : absl::Status(status.code(), absl::StrCat(flag, ": ", status.message()));
}

template <typename T>
absl::Status Take(const char* flag, const std::string& text, absl::StatusOr<T> (*parse)(absl::string_view), T* value) {
  if (text.empty()) return absl::OkStatus();
  absl::StatusOr<T> parsed = parse(text);
  if (parsed.ok()) *value = *parsed;
  return Named(flag, parsed.status());
}

absl::Status TakeAddresses(const CommandFlags& flags, std::vector<Address>* addresses) {
  for (const std::string& text : flags.addresses) {
    absl::StatusOr<Address> address = Address::Parse(text);
    if (!address.ok()) return Named("--address", address.status());
    addresses->push_back(*address);
  }
  if (flags.devices == 1) return absl::OkStatus();
  if (addresses->size() > 1) {
    return absl::InvalidArgumentError("--devices: with one --address, from which they go on, or without");
  }
  if (addresses->empty()) addresses->push_back(Address::Parse("127.0.0.1").value());
  while (addresses->size() < flags.devices) addresses->push_back(Next(addresses->back()));
  return absl::OkStatus();
}

// Absolute: the program may change its folder.
absl::Status TakePcap(const std::string& text, std::string* path) {
  if (text.empty()) return absl::OkStatus();
  std::error_code error;
  *path = std::filesystem::absolute(text, error).lexically_normal().string();
  if (!error && path->find(',') == std::string::npos) return absl::OkStatus();
  return absl::InvalidArgumentError("--pcap: give a path without commas");
}

// Checks that the shared object reaches the command: an error, or a line on standard error if it
// can run without.
absl::Status CheckReach(const std::string& command) {
  const ProgramFile program = FindProgramFile(command);
  const std::string path = base::Printable(program.path);
  switch (program.reach) {
    case Reach::kWhole:
      break;
    case Reach::kMusl:
      return absl::FailedPreconditionError(
          absl::StrCat(path, " is linked with musl, whose dynamic linker cannot preload ", kSharedObject,
                       ": run a build of it that is linked with glibc"));
    case Reach::kStatic:
      std::cerr << "tok: " << path << " is statically linked: it has no device of the software NIC; what it starts may "
                << "have one" << std::endl;
      break;
    case Reach::kMoreRights:
      std::cerr << "tok: " << path
                << " gets more rights than you have (setuid, setgid or capabilities): nothing can be "
                << "preloaded then, and it has no device of the software NIC" << std::endl;
      break;
  }
  return absl::OkStatus();
}

int Fail(bool json, const absl::Status& status, int code) {
  PrintError(json, status);
  return code;
}

}  // namespace

void AddCommand(CLI::App& app, CommandFlags& flags) {
  CLI::App* verbs = app.add_subcommand("verbs", kHelp);
  verbs->footer(kFooter);
  verbs->add_option("--address", flags.addresses, "IP address of the device (again, or with commas: of several)")
      ->delimiter(',')
      ->allow_extra_args(false);
  verbs
      ->add_option("--devices", flags.devices,
                   "how many, at addresses that follow each other; the first 127.0.0.1 unless given")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  verbs->add_flag("--shm", flags.shared_memory,
                  "packets through shared memory, faster, to programs of this machine that have --shm alone");
  verbs->add_option("--loss", flags.loss, "share of the packets sent that is lost, such as 1%");
  verbs->add_option("--corrupt", flags.corrupt, "share of them that arrives damaged, and is dropped there");
  verbs->add_option("--delay", flags.delay, "time that each packet is held back, such as 50us")->type_name("TIME");
  verbs->add_option("--seed", flags.seed, "which packets: the same seed, the same ones of those sent")
      ->capture_default_str();
  verbs
      ->add_option(
          "--error-at", flags.error_at,
          "the N-th request to send fails, and its queue pair goes to Error: retry-exceeded, or the status given")
      ->type_name("N[:STATUS]");
  verbs
      ->add_option("--port-down", flags.port_down,
                   "after this time the port of the first device goes down, and after the second comes up again")
      ->type_name("AFTER[:FOR]");
  verbs
      ->add_option("--pcap", flags.pcap,
                   "write the packets of each process to this file's name, a dot and the process's number")
      ->type_name("FILE");
  verbs->add_flag("--explain", flags.explain, "print each command that the program gives to a device, as strace does");
  verbs->add_flag("--counters", flags.counters, "print what each device carried when its process exits");
  verbs
      ->add_option("--library", flags.library,
                   absl::StrCat("the ", kSharedObject, " to use, in place of that beside tok or in ../lib/tokamak"))
      ->type_name("FILE");
  verbs->add_option("command", flags.command, "the program with its arguments, after --")->required();
}

absl::StatusOr<Options> OptionsOf(const CommandFlags& flags) {
  Options options;
  options.explain = flags.explain;
  options.counters = flags.counters;
  options.shared_memory = flags.shared_memory;
  options.faults.seed = flags.seed;
  absl::Status status = TakeAddresses(flags, &options.addresses);
  if (status.ok()) status = Take("--loss", flags.loss, &base::ParseShare, &options.faults.loss);
  if (status.ok()) status = Take("--corrupt", flags.corrupt, &base::ParseShare, &options.faults.corruption);
  if (status.ok()) status = Take("--delay", flags.delay, &base::ParseDuration, &options.faults.delay);
  if (status.ok()) status = Take("--error-at", flags.error_at, &RequestFault::Parse, &options.request_fault);
  if (status.ok()) status = Take("--port-down", flags.port_down, &PortFault::Parse, &options.port_fault);
  if (status.ok()) status = TakePcap(flags.pcap, &options.pcap);
  if (!status.ok()) return status;
  return options;
}

int RunCommand(const CommandFlags& flags, bool json) {
  const absl::StatusOr<Options> options = OptionsOf(flags);
  if (!options.ok()) return Fail(json, options.status(), 2);
  const absl::StatusOr<std::string> library = FindSharedObject(flags.library);
  if (!library.ok()) return Fail(json, library.status(), 2);
  if (const absl::Status reach = CheckReach(flags.command.front()); !reach.ok()) return Fail(json, reach, 126);
  const char* const preload = std::getenv("LD_PRELOAD");
  setenv("LD_PRELOAD", WithPreload(*library, preload == nullptr ? "" : preload).c_str(), 1);
  setenv(kOptionsVariable, options->ToString().c_str(), 1);
  std::vector<std::string> words = flags.command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int error = errno;
  return Fail(json, absl::NotFoundError(absl::StrCat(words[0], ": ", std::strerror(error))),
              error == ENOENT ? 127 : 126);
}

}  // namespace tokamak::cli::verbs
