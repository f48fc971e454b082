#include "sim/emulation/emulation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lib/base/check.h"
#include "lib/base/units.h"

namespace tokamak::sim {
namespace {

constexpr base::Duration kReportInterval = base::Seconds(1);

double Milliseconds(base::Duration duration) { return static_cast<double>(duration.picoseconds()) / 1e9; }

nlohmann::json CountersOf(const AttachmentCounters& counters) {
  return {
      {"entered_roce", counters.entered[static_cast<size_t>(FrameKind::kRoce)].value()},
      {"entered_ipv4", counters.entered[static_cast<size_t>(FrameKind::kIpv4)].value()},
      {"entered_arp", counters.entered[static_cast<size_t>(FrameKind::kArp)].value()},
      {"delivered", counters.delivered.value()},
      {"delivered_bytes", counters.delivered_bytes.value()},
      {"delivered_marked", counters.delivered_marked.value()},
      {"not_carried", counters.not_carried.value()},
      {"nobody", counters.nobody.value()},
      {"too_long", counters.too_long.value()},
      {"uncut", counters.uncut.value()},
      {"held_up", counters.held_up.value()},
      {"damaged", counters.damaged.value()},
      {"leaving_full", counters.leaving_full.value()},
      {"failed", counters.failed.value()},
  };
}

std::string LagText(const LagMeter::Lag& lag) {
  return absl::StrCat("lag ", base::FormatDuration(lag.percentile99), " (99 %), ", base::FormatDuration(lag.most),
                      " (most)");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Emulation>> Emulation::Build(RealTime& time, const Topology& topology,
                                                            absl::Span<const AttachPoint> points,
                                                            const EmulationOptions& options, std::ostream& out) {
  std::unique_ptr<Emulation> emulation(new Emulation(time, options, out));
  FabricOptions fabric_options;
  fabric_options.seed = options.seed;
  auto fabric = SwitchedFabric::Build(time.loop(), topology, fabric_options, nullptr);
  if (!fabric.ok()) return fabric.status();
  emulation->fabric_ = *std::move(fabric);
  for (const AttachPoint& point : points) {
    if (absl::Status s = emulation->Attach(point); !s.ok()) return s;
  }
  return emulation;
}

Emulation::~Emulation() { Stop(); }

absl::Status Emulation::Attach(const AttachPoint& point) {
  const Topology& topology = fabric_->topology();
  uint32_t number = 0;  // its first interface
  for (const Topology::Host& host : topology.hosts) {
    if (host.name != point.host) {
      number += static_cast<uint32_t>(host.addresses.size());
      continue;
    }
    auto device = OutsideDevice::Open(point);
    if (!device.ok()) return device.status();
    attachments_.push_back(std::make_unique<Attachment>(point.host, *std::move(device), time_, lag_));
    out_ << point.host << ": " << attachments_.back()->device().name() << ", address "
         << host.addresses.front().ToString() << std::endl;
    return attachments_.back()->PlugIn(fabric_->interface_at(number), options_.queue);
  }
  const std::string names = absl::StrJoin(
      topology.hosts, ", ", [](std::string* text, const Topology::Host& host) { absl::StrAppend(text, host.name); });
  return absl::NotFoundError(absl::StrCat("the topology has no host ", point.host, "; it has ", names));
}

void Emulation::Start() {
  CHECK(!started_);
  started_ = true;
  began_ = time_.loop().Now();
  io_.CallOn([this] {
    for (const auto& attachment : attachments_) attachment->Watch(io_.loop());
  });
  report_ = time_.loop().RunAfter(kReportInterval, [this] { Report(); });
}

void Emulation::Stop() {
  if (!std::exchange(started_, false)) return;
  report_.Cancel();
  io_.CallOn([this] {
    for (const auto& attachment : attachments_) attachment->Unwatch();
  });
  io_.Stop();
}

uint64_t Emulation::DeliveredBytes() const {
  uint64_t sum = 0;
  for (const auto& attachment : attachments_) sum += attachment->counters().delivered_bytes;
  return sum;
}

void Emulation::Report() {
  lag_.Add(time_.lag());
  const FabricTotals totals = FabricTotals::Of(*fabric_);
  const uint64_t bytes = DeliveredBytes();
  const LagMeter::Lag lag = lag_.TakeRecent();
  out_ << absl::StrFormat("%.0f s: %.1f Mb/s delivered, %d marked, %d lost, %d dropped, %d pauses, %s\n",
                          Milliseconds(time_.loop().Now() - began_) / 1000,
                          static_cast<double>(bytes - reported_bytes_) * 8 / 1e6, totals.marked - reported_.marked,
                          totals.lost - reported_.lost, totals.dropped - reported_.dropped,
                          totals.pauses - reported_.pauses, LagText(lag));
  if (lag.most > options_.lag_bound) {
    out_ << "the machine does not keep up: it was up to " << base::FormatDuration(lag.most)
         << " late in this second, and times of the fabric are wrong by that\n";
  }
  out_.flush();
  reported_ = totals;
  reported_bytes_ = bytes;
  report_ = time_.loop().RunAfter(kReportInterval, [this] { Report(); });
}

nlohmann::json Emulation::Summary() {
  const FabricTotals totals = FabricTotals::Of(*fabric_);
  const LagMeter::Lag lag = lag_.Total();
  nlohmann::json summary = {
      {"seconds", Milliseconds(time_.loop().Now() - began_) / 1000},
      {"fabric",
       {{"marked", totals.marked},
        {"lost", totals.lost},
        {"corrupted", totals.corrupted},
        {"dropped", totals.dropped},
        {"pauses", totals.pauses}}},
      {"lag",
       {{"percentile_99_ms", Milliseconds(lag.percentile99)},
        {"most_ms", Milliseconds(lag.most)},
        {"bound_ms", Milliseconds(options_.lag_bound)},
        {"samples", lag.samples}}},
  };
  for (const auto& attachment : attachments_) {
    summary["hosts"][attachment->host()] = CountersOf(attachment->counters());
  }
  return summary;
}

void Emulation::PrintSummary() {
  const nlohmann::json summary = Summary();
  const LagMeter::Lag lag = lag_.Total();
  for (const auto& [host, counters] : summary["hosts"].items()) {
    out_ << host << ":";
    for (const auto& [name, value] : counters.items()) {
      if (value != 0) out_ << " " << name << " " << value;
    }
    out_ << "\n";
  }
  const nlohmann::json& fabric = summary["fabric"];
  out_ << "in all: " << fabric["marked"] << " marked, " << fabric["lost"] << " lost, " << fabric["dropped"]
       << " dropped, " << fabric["pauses"] << " pauses, " << LagText(lag)
       << (lag.most > options_.lag_bound ? ", beyond the bound of " : ", within the bound of ")
       << base::FormatDuration(options_.lag_bound) << std::endl;
}

}  // namespace tokamak::sim
