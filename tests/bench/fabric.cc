// How many bytes a second soft::UdpFabric carries over loopback, next to a TCP stream in the same
// run.
//
//   bazel run -c opt //tests/bench:fabric -- --seconds=1 --repeats=5 --payloads=1024,4096
//
// Two threads, each pinned to a processor of its own where there are two. One sends WRITE packets
// within a window that the other one's acknowledgements move; that one checks each ICRC and copies
// the payload into place. Nothing above the fabric takes part. For a profile:
// CPUPROFILE=/tmp/fabric.prof CPUPROFILE_FREQUENCY=1000, built with --config=profile.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "lib/base/check.h"
#include "lib/os/loop_thread.h"
#include "lib/verbs/soft/udp/udp_fabric.h"
#include "tests/bench/summary.h"
#include "tests/bench/tcp_peer.h"

namespace tokamak::verbs::soft {
namespace {

struct Settings {
  double seconds = 1;
  int repeats = 5;
  std::vector<uint32_t> payloads = {1024, 4096};
  uint32_t batch = 64;                 // packets for each Send
  uint64_t arena = 64 << 20;           // bytes that are sent from and copied to, again and again
  uint64_t window = 0;                 // bytes in flight; 0: what the port says
  std::string source = "127.47.91.1";  // which nothing else on the machine is likely to use
  std::string sink = "127.47.91.2";
  bool segment = true;
};

std::vector<uint8_t> MakeArena(uint64_t bytes) {
  std::vector<uint8_t> arena(bytes);
  for (uint64_t i = 0; i < bytes; ++i) arena[i] = static_cast<uint8_t>(i * 131);
  return arena;
}

std::vector<int> ProcessorsFor(int thread) {
  if (std::thread::hardware_concurrency() < 2) return {};
  return {thread};
}

UdpFabricOptions FabricOptions(const Settings& settings) {
  UdpFabricOptions options;
  options.segment = settings.segment;
  return options;
}

// Copies into place and acknowledges each batch.
class Sink final {
 public:
  Sink(os::EpollLoop& loop, const Settings& settings, uint32_t payload)
      : payload_(payload), arena_(MakeArena(settings.arena)), fabric_(loop, FabricOptions(settings)) {
    absl::StatusOr<std::unique_ptr<Port>> port =
        fabric_.Open(loop, Address::Parse(settings.sink).value(),
                     {[this](absl::Span<const Packet> packets) { OnPackets(packets); }, [] {}});
    CHECK(port.ok()) << port.status();
    port_ = *std::move(port);
  }

  const Port& port() const { return *port_; }
  uint64_t bytes() const { return bytes_.value(); }
  const UdpCounters& counters() const { return fabric_.counters(); }

 private:
  void OnPackets(absl::Span<const Packet> packets) {
    const uint64_t slots = arena_.size() / payload_;
    for (const Packet& packet : packets) {
      std::memcpy(&arena_[packet.psn % slots * payload_], packet.payload[0].data, packet.payload[0].length);
      bytes_.Add(packet.payload[0].length);
    }
    Packet ack;
    ack.opcode = PacketOpcode::kAcknowledge;
    ack.peer = packets.back().peer;
    ack.psn = packets.back().psn;
    if (port_->Send({&ack, 1}) == 0) return;  // the next one says it as well
  }

  const uint32_t payload_;
  std::vector<uint8_t> arena_;
  UdpFabric fabric_;
  Counter bytes_;
  std::unique_ptr<Port> port_;
};

class Source final {
 public:
  Source(os::EpollLoop& loop, const Settings& settings, uint32_t payload, const Port& sink)
      : loop_(loop),
        payload_(payload),
        window_((settings.window != 0 ? settings.window : sink.receive_window()) / payload),
        arena_(MakeArena(settings.arena)),
        fabric_(loop, FabricOptions(settings)),
        packets_(settings.batch) {
    absl::StatusOr<std::unique_ptr<Port>> port =
        fabric_.Open(loop, Address::Parse(settings.source).value(),
                     {[this](absl::Span<const Packet> packets) { OnPackets(packets); }, [this] { SendMore(); }});
    CHECK(port.ok()) << port.status();
    port_ = *std::move(port);
    for (Packet& packet : packets_) {
      packet.opcode = PacketOpcode::kWriteMiddle;
      packet.peer = sink.address();
      packet.slices = 1;
    }
    SendMore();
  }

  const UdpCounters& counters() const { return fabric_.counters(); }
  uint64_t stalls() const { return stalls_; }

 private:
  void OnPackets(absl::Span<const Packet> packets) {
    for (const Packet& packet : packets) acknowledged_ += (packet.psn + 1 - acknowledged_) & kPsnMask;
    SendMore();
  }

  // One batch, and the next in a task of its own, so that acknowledgements are seen in between.
  void SendMore() {
    const uint64_t free = window_ - std::min(window_, sent_ - acknowledged_);
    const uint64_t slots = arena_.size() / payload_;
    const size_t count = std::min<uint64_t>(free, packets_.size());
    for (size_t i = 0; i < count; ++i) {
      packets_[i].psn = static_cast<uint32_t>(sent_ + i) & kPsnMask;
      packets_[i].payload[0] = {&arena_[(sent_ + i) % slots * payload_], payload_};
    }
    if (count > 0) sent_ += port_->Send(absl::MakeConstSpan(packets_).first(count));
    if (count == packets_.size()) next_ = loop_.Post([this] { SendMore(); });
    stall_ = loop_.RunAfter(base::Milliseconds(200), [this] {
      ++stalls_;  // packets were lost: begin anew
      acknowledged_ = sent_;
      SendMore();
    });
  }

  os::EpollLoop& loop_;
  const uint32_t payload_;
  const uint64_t window_;  // packets
  std::vector<uint8_t> arena_;
  UdpFabric fabric_;
  std::vector<Packet> packets_;
  std::unique_ptr<Port> port_;
  uint64_t sent_ = 0;  // packets
  uint64_t acknowledged_ = 0;
  uint64_t stalls_ = 0;
  base::Timer next_;
  base::Timer stall_;
};

// Bytes a second, counted in the middle of the run.
template <typename Bytes>
double Measure(const Settings& settings, const Bytes& bytes) {
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto begin = std::chrono::steady_clock::now();
  const uint64_t before = bytes();
  std::this_thread::sleep_for(std::chrono::duration<double>(settings.seconds));
  const uint64_t after = bytes();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(after - before) / took.count();
}

double MeasureUdp(const Settings& settings, uint32_t payload) {
  os::LoopThread sink_thread({"sink", ProcessorsFor(1)});
  os::LoopThread source_thread({"source", ProcessorsFor(0)});
  std::unique_ptr<Sink> sink;
  std::unique_ptr<Source> source;
  sink_thread.CallOn([&] { sink = std::make_unique<Sink>(sink_thread.loop(), settings, payload); });
  source_thread.CallOn(
      [&] { source = std::make_unique<Source>(source_thread.loop(), settings, payload, sink->port()); });
  const double rate = Measure(settings, [&] { return sink->bytes(); });
  source_thread.CallOn([&] {
    const UdpCounters& sent = source->counters();
    const UdpCounters& got = sink->counters();
    const auto per = [](const Counter& a, const Counter& b) {
      return static_cast<double>(a.value()) / static_cast<double>(std::max<uint64_t>(b.value(), 1));
    };
    absl::FPrintF(stderr,
                  "  %d B: %.1f packets a send, %.1f a receive; kernel drops %d, icrc failures %d, unexpected ids %d, "
                  "stalls %d\n",
                  payload, per(sent.packets_sent, sent.send_calls), per(got.packets_received, got.receive_calls),
                  got.Dropped(UdpDrop::kSocketBuffer), got.Dropped(UdpDrop::kIcrc),
                  got.identifications_unexpected.value(), source->stalls());
    source.reset();
  });
  sink_thread.CallOn([&] { sink.reset(); });
  return rate;
}

double MeasureTcp(bench::TcpPeer& peer, const Settings& settings, absl::Span<const uint8_t> arena) {
  constexpr uint64_t kMessage = 256 << 10;
  const absl::StatusOr<double> rate = peer.Stream(arena, kMessage, settings.seconds);
  CHECK(rate.ok()) << rate.status();
  return *rate;
}

void Print(const std::string& what, const bench::Summary& rate) {
  absl::PrintF("%-14s %6.2f GB/s median  (%.2f to %.2f, %d runs)\n", what, rate.median / 1e9, rate.least / 1e9,
               rate.most / 1e9, rate.count);
}

void Run(const Settings& settings) {
  auto peer = bench::TcpPeer::Start();  // first: it forks
  CHECK(peer.ok()) << peer.status();
  const std::vector<uint8_t> arena = MakeArena(settings.arena);
  std::vector<std::vector<double>> udp(settings.payloads.size());
  std::vector<double> tcp;
  for (int i = 0; i < settings.repeats; ++i) {  // in turns, so that a busy machine is busy for all
    for (size_t j = 0; j < settings.payloads.size(); ++j) udp[j].push_back(MeasureUdp(settings, settings.payloads[j]));
    tcp.push_back(MeasureTcp(**peer, settings, arena));
  }
  for (size_t j = 0; j < settings.payloads.size(); ++j) {
    Print(absl::StrFormat("udp %d B", settings.payloads[j]), bench::Summarise(std::move(udp[j])));
  }
  Print("tcp stream", bench::Summarise(std::move(tcp)));
}

}  // namespace
}  // namespace tokamak::verbs::soft

int main(int argc, char** argv) {
  tokamak::verbs::soft::Settings settings;
  CLI::App app("Bytes a second over loopback: the software NIC's UDP fabric, and TCP.");
  app.add_option("--seconds", settings.seconds, "of each measurement")->capture_default_str();
  app.add_option("--repeats", settings.repeats)->capture_default_str();
  app.add_option("--payloads", settings.payloads, "bytes of each packet: 256 to 4096")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--batch", settings.batch, "packets for each Send")->capture_default_str();
  app.add_option("--arena", settings.arena, "bytes sent from and copied to")->capture_default_str();
  app.add_option("--window", settings.window, "bytes in flight; 0: as the port says")->capture_default_str();
  app.add_option("--segment", settings.segment, "batches leave as UDP_SEGMENT sends")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  tokamak::verbs::soft::Run(settings);
}
