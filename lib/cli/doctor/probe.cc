#include "lib/cli/doctor/probe.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/cli/doctor/ping_pong.h"
#include "lib/os/epoll_loop.h"
#include "lib/verbs/ibv/translation/device_name.h"
#include "lib/verbs/ibv/translation/inventory.h"

namespace tokamak::cli::doctor {

namespace {

using nlohmann::json;

// The child's side of the conversation.
class Teller final {
 public:
  explicit Teller(const std::function<void(const std::string&)>& say) : say_(say) {}

  void Step(absl::string_view name) const { Say({{"step", std::string(name)}}); }
  void Failure(const absl::Status& status) const {
    Say({{"failure", {{"code", status.raw_code()}, {"text", std::string(status.message())}}}});
  }
  void Port(const verbs::ibv::PortInventory& port) const {
    Say({{"port", {{"number", port.number}, {"active_mtu", port.active_mtu}, {"max_mtu", port.max_mtu}}}});
  }
  void Device(const verbs::Device& device) const {
    Say({{"device",
          {{"address", device.address().ToString()},
           {"active_mtu", device.limits().active_mtu},
           {"is_rdma", device.is_rdma()}}}});
  }
  void Peer(const PeerHello& hello) const { Say({{"peer", hello.Encode()}}); }
  void Numbers(const PingPongNumbers& numbers) const {
    Say({{"numbers",
          {{"connected_ns", numbers.connected_in.nanoseconds()},
           {"path_mtu", numbers.path_mtu},
           {"half_round_trip_ns", numbers.half_round_trip.nanoseconds()},
           {"rounds", numbers.rounds},
           {"write_rate", numbers.write_rate},
           {"read_rate", numbers.read_rate},
           {"batches", numbers.batches}}}});
  }
  void End() const { Say({{"end", true}}); }

 private:
  void Say(const json& words) const { say_(words.dump(-1, ' ', false, json::error_handler_t::replace)); }

  const std::function<void(const std::string&)>& say_;
};

absl::Status InspectPorts(const ProbeRequest& request, const Teller& teller) {
  const auto name = verbs::ibv::ParseDeviceName(request.device);
  if (!name.ok()) return name.status();
  const auto inventory = verbs::ibv::Inspect(name->device);
  if (!inventory.ok()) return inventory.status();
  for (const verbs::ibv::PortInventory& port : inventory->ports) teller.Port(port);
  return absl::OkStatus();
}

// From `open` on. Whatever was made is gone when it returns.
absl::Status UseDevice(const ProbeRequest& request, const PingPongPlan& plan, const Teller& teller) {
  teller.Step("open");
  os::EpollLoop loop(MeasuringDetection(UsableProcessors()));
  const daemon::DeviceSettings settings = SettingsFor(request.by_tcp, request.address, request.fabric);
  auto opened = daemon::OpenDevice(request.device, settings);
  if (!opened.ok()) return opened.status();
  verbs::Device& device = (*opened)->device();
  teller.Device(device);

  std::unique_ptr<PingPongResponder> responder;
  verbs::Address service;
  if (request.peer.empty()) {
    teller.Step("listen");
    auto started = PingPongResponder::Start(loop, device);
    if (!started.ok()) return started.status();
    responder = *std::move(started);
    service = responder->service();
  } else {
    teller.Step("ask");
    const auto hello = AskPeer(request.peer, request.peer_port, plan.patience);
    if (!hello.ok()) return hello.status();
    teller.Peer(*hello);
    if (hello->by_tcp != request.by_tcp) {
      return absl::FailedPreconditionError(absl::StrCat("the peer makes connections by --cm ",
                                                        hello->by_tcp ? "tcp" : "rdma", ", this side by --cm ",
                                                        request.by_tcp ? "tcp" : "rdma"));
    }
    service = hello->service;
  }
  const auto on_step = [&](absl::string_view step) { teller.Step(step); };
  const auto numbers = RunPingPong(loop, device, service, plan, on_step);
  if (!numbers.ok()) return numbers.status();
  teller.Numbers(*numbers);
  teller.Step("close");
  return absl::OkStatus();
}

template <typename T>
T Get(const json& object, const char* key, T otherwise) {
  const auto value = object.find(key);
  if (value == object.end()) return otherwise;
  if constexpr (std::is_same_v<T, std::string>)
    return value->is_string() ? value->get<T>() : otherwise;
  else if constexpr (std::is_same_v<T, bool>)
    return value->is_boolean() ? value->get<T>() : otherwise;
  else
    return value->is_number() ? value->get<T>() : otherwise;
}

PingPongNumbers ReadNumbers(const json& words) {
  PingPongNumbers numbers;
  numbers.connected_in = base::Nanoseconds(Get<int64_t>(words, "connected_ns", 0));
  numbers.path_mtu = Get<uint32_t>(words, "path_mtu", 0);
  numbers.half_round_trip = base::Nanoseconds(Get<int64_t>(words, "half_round_trip_ns", 0));
  numbers.rounds = Get<uint32_t>(words, "rounds", 0);
  numbers.write_rate = Get<double>(words, "write_rate", 0);
  numbers.read_rate = Get<double>(words, "read_rate", 0);
  numbers.batches = Get<uint32_t>(words, "batches", 0);
  return numbers;
}

}  // namespace

daemon::DeviceSettings SettingsFor(bool by_tcp, const verbs::Address& address, const daemon::FabricSettings& fabric) {
  daemon::DeviceSettings settings;
  settings.detection = MeasuringDetection(UsableProcessors());
  settings.connect_by = by_tcp ? daemon::ConnectBy::kTcp : daemon::ConnectBy::kRdmaCm;
  settings.address = address;
  settings.fabric = fabric;
  return settings;
}

std::string FlagsOf(const daemon::FabricSettings& fabric) {
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

bool FoldLine(const std::string& line, ProbeOutcome& outcome) {
  const json words = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!words.is_object() || words.size() != 1) return false;
  const std::string kind = words.begin().key();
  const json& value = words.begin().value();
  if (kind == "step" && value.is_string()) {
    outcome.steps.push_back(value.get<std::string>());
  } else if (kind == "failure" && value.is_object()) {
    outcome.failure =
        absl::Status(static_cast<absl::StatusCode>(Get<int>(value, "code", 2)), Get<std::string>(value, "text", ""));
  } else if (kind == "port" && value.is_object()) {
    outcome.ports.push_back(
        {Get<uint32_t>(value, "number", 0), Get<uint32_t>(value, "active_mtu", 0), Get<uint32_t>(value, "max_mtu", 0)});
  } else if (kind == "device" && value.is_object()) {
    outcome.address = Get<std::string>(value, "address", "");
    outcome.active_mtu = Get<uint32_t>(value, "active_mtu", 0);
    outcome.is_rdma = Get<bool>(value, "is_rdma", false);
  } else if (kind == "peer" && value.is_string()) {
    const auto hello = PeerHello::Decode(value.get<std::string>());
    if (hello.ok()) outcome.peer = *hello;
  } else if (kind == "numbers" && value.is_object()) {
    outcome.numbers = ReadNumbers(value);
  } else if (kind == "end") {
    outcome.finished = true;
  } else {
    return false;
  }
  return true;
}

void RunProbe(const ProbeRequest& request, const PingPongPlan& plan,
              const std::function<void(const std::string&)>& say) {
  const Teller teller(say);
  absl::Status status;
  if (absl::StartsWith(request.device, "ibv:")) {
    teller.Step("inspect");
    status = InspectPorts(request, teller);
  }
  if (status.ok()) status = UseDevice(request, plan, teller);
  if (!status.ok()) return teller.Failure(status);
  teller.End();
}

}  // namespace tokamak::cli::doctor
