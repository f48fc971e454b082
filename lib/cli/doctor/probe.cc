#include "lib/cli/doctor/probe.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/os/file_descriptor.h"
#include "lib/os/process/child_process.h"
#include "lib/verbs/ibv/translation/device_name.h"
#include "lib/verbs/ibv/translation/inventory.h"
#include "nlohmann/json.hpp"

template <>
struct nlohmann::adl_serializer<absl::Status> {
  static void to_json(json& words, const absl::Status& status) {
    words = {{"code", status.raw_code()}, {"text", std::string(status.message())}};
  }
  static void from_json(const json& words, absl::Status& status) {
    status = absl::Status(static_cast<absl::StatusCode>(words.value("code", 2)), words.value("text", ""));
  }
};

namespace tokamak::cli::doctor {

using nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DeviceWords, device, active_mtu, netdev_mtu)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(PullFigures, peer, connected_ns, half_round_trip_ns, calls, rates)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ProbedPort, number, active_mtu, max_mtu)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ProbeOutcome, steps, finished, failure, ports, address, active_mtu,
                                                figures)

namespace {

constexpr size_t kMaxOutput = 1024 * 1024;  // bytes of a probe's words; it says some ten kilobytes
constexpr size_t kWordsKept = 3;            // lines of a library, shown when a probe died

std::string ReadAll(int fd) {
  std::string text(kMaxOutput, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = pread(fd, text.data() + size, text.size() - size, static_cast<off_t>(size));
    if (count <= 0) break;
    size += static_cast<size_t>(count);
  }
  text.resize(size);
  return text;
}

// Reads the last outcome of a probe's words, and of the lines that are none (a library's warnings)
// the last.
ProbeOutcome ReadOutcome(const std::string& text, std::vector<std::string>& others) {
  ProbeOutcome outcome;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const json words = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (words.is_object() && words.contains("steps")) {
      outcome = words.get<ProbeOutcome>();
    } else {
      others.emplace_back(line);
      if (others.size() > kWordsKept) others.erase(others.begin());
    }
  }
  return outcome;
}

// Ends a child that took too long. Returns false if the kernel does not let go of it.
bool End(os::ChildProcess& child, base::Duration grace) {
  if (!child.Signal(SIGKILL).ok()) return true;  // it ended in this moment
  if (child.Wait(grace).ok()) return true;
  child.Detach();  // or this process would wait as well
  return false;
}

absl::Status InspectPorts(const std::string& device, std::vector<ProbedPort>& ports) {
  const auto name = verbs::ibv::ParseDeviceName(device);
  if (!name.ok()) return name.status();
  const auto inventory = verbs::ibv::Inspect(name->device);
  if (!inventory.ok()) return inventory.status();
  for (const auto& port : inventory->ports) ports.push_back({port.number, port.active_mtu, port.max_mtu});
  return absl::OkStatus();
}

// All that a probe makes on a device.
struct Used {
  os::EpollLoop loop{MeasuringDetection(UsableProcessors())};
  std::unique_ptr<daemon::OpenedDevice> device;
  std::unique_ptr<Station> station;
  std::unique_ptr<Station> lender;
};

// Takes the steps from opening on.
absl::Status UseDevice(const ProbeRequest& request, const PullPlan& plan, const StepHandler& on_step, Used& used,
                       ProbeOutcome& outcome) {
  on_step("open");
  auto opened = request.opening.Open(request.device);
  if (!opened.ok()) return opened.status();
  used.device = *std::move(opened);
  os::EpollLoop& loop = used.loop;
  verbs::Device& device = used.device->device();
  outcome.address = device.address().ToString();
  outcome.active_mtu = device.limits().active_mtu;
  auto station = Station::Make(loop, device, kObjectsAtOnce, plan.patience, on_step);
  if (!station.ok()) return station.status();
  used.station = *std::move(station);
  verbs::Address service = request.peer;
  if (service.is_unspecified()) {
    auto made = Station::Make(loop, device, 1, plan.patience, on_step);
    if (!made.ok()) return made.status();
    used.lender = *std::move(made);
    on_step("listen");
    if (absl::Status s = used.lender->Lend(device.address(), {request.device, outcome.active_mtu, 0}); !s.ok()) {
      return s;
    }
    service = used.lender->endpoint().address();
  }
  if (absl::Status s = TryPulls(loop, *used.station, service, plan, on_step, outcome.figures); !s.ok()) return s;
  on_step("close");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<daemon::OpenedDevice>> Opening::Open(const std::string& device) const {
  daemon::DeviceSettings settings;
  settings.detection = MeasuringDetection(UsableProcessors());
  settings.connect_by = by_tcp ? daemon::ConnectBy::kTcp : daemon::ConnectBy::kRdmaCm;
  settings.address = address;
  settings.fabric = fabric;
  return daemon::OpenDevice(device, settings);
}

std::string Opening::FabricFlags() const {
  std::vector<std::string> flags;
  if (fabric.pkey_index != 0) flags.push_back(absl::StrCat("--pkey-index ", fabric.pkey_index));
  if (fabric.path_mtu) flags.push_back(absl::StrCat("--path-mtu ", *fabric.path_mtu));
  if (fabric.router_lid) flags.push_back(absl::StrCat("--router-lid ", *fabric.router_lid));
  if (fabric.service_level) flags.push_back(absl::StrCat("--service-level ", *fabric.service_level));
  if (fabric.traffic_class) flags.push_back(absl::StrCat("--traffic-class ", *fabric.traffic_class));
  return absl::StrJoin(flags, " ");
}

bool ProbeOutcome::Reached(absl::string_view step) const {
  return std::find(steps.begin(), steps.end(), step) != steps.end();
}

void RunProbe(const ProbeRequest& request, const PullPlan& plan, const std::function<void(const std::string&)>& say) {
  ProbeOutcome outcome;
  const auto say_all = [&] { say(json(outcome).dump(-1, ' ', false, json::error_handler_t::replace)); };
  const StepHandler on_step = [&](absl::string_view step) {
    outcome.steps.emplace_back(step);
    say_all();
  };
  if (absl::StartsWith(request.device, "ibv:")) {
    on_step("inspect");
    outcome.failure = InspectPorts(request.device, outcome.ports);
  }
  if (outcome.failure.ok()) {
    Used used;
    outcome.failure = UseDevice(request, plan, on_step, used, outcome);
    if (!outcome.failure.ok()) say_all();  // what was made may hang when it goes
  }
  outcome.finished = outcome.failure.ok();
  say_all();
}

ProbeOutcome ProbeInChild(const ProbeRequest& request, const ChildProberOptions& prober) {
  ProbeOutcome nothing;
  nothing.steps = {"start"};
  const os::FileDescriptor words(memfd_create("tokamak-probe", MFD_CLOEXEC));
  if (!words.valid()) {
    nothing.failure = absl::ErrnoToStatus(errno, "cannot make a memory file");
    return nothing;
  }
  os::ChildOptions options;
  options.argv = prober.program;
  std::string flags = absl::StrCat("--device ", request.device);
  if (!request.peer.is_unspecified()) absl::StrAppend(&flags, " --peer ", request.peer.ToString());
  if (request.opening.by_tcp) absl::StrAppend(&flags, " --cm tcp --address ", request.opening.address.ToString());
  absl::StrAppend(&flags, " ", request.opening.FabricFlags());
  for (const absl::string_view word : absl::StrSplit(flags, ' ', absl::SkipEmpty())) options.argv.emplace_back(word);
  options.output = absl::StrCat("/proc/", getpid(), "/fd/", words.get());
  options.die_with_parent = true;
  auto child = os::ChildProcess::Start(options);
  if (!child.ok()) {
    nothing.failure = child.status();
    return nothing;
  }
  const auto ended = (*child)->Wait(prober.deadline);
  const bool stuck = !ended.ok() && !End(**child, prober.grace);
  std::vector<std::string> others;
  ProbeOutcome outcome = ReadOutcome(ReadAll(words.get()), others);
  if (outcome.steps.empty()) outcome.steps = {"start"};
  outcome.stuck = stuck;
  outcome.hung = !ended.ok();
  if (outcome.hung) {
    outcome.finished = false;
  } else if (!outcome.finished && outcome.failure.ok()) {
    outcome.failure = absl::InternalError(
        absl::StrCat("the process that tried it ended with ", ended->ToString(), ": ", absl::StrJoin(others, " ")));
  }
  return outcome;
}

}  // namespace tokamak::cli::doctor
