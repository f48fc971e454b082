// Figures of the bare software NIC, beside TCP in the same run: WRITE and READ bandwidth, and the
// latency of a small SEND.
//
//   bazel run -c opt //tests/bench:nic -- [--json] [--rounds N] [--seconds S]
//
// Two processes, soft:udp on two loopback addresses. Contestants take turns within each round, so
// that a machine that slows down slows all of them down; shown are the median of the rounds, their
// spread, and the median of the ratios within each round.
//
//   write, read    messages of one size from one end's memory to the other's, several in flight;
//                  each loop sleeps when idle
//   tcp stream     the same messages one after another on one connection
//   send           64 B inline to and fro: half of a round trip, median and 99th percentile
//                  event: loops sleep when idle; busy: they never do
//                  threads: the NIC has a thread of its own, as in tokd; shared: its owner's thread
//   tcp ping-pong  the same over a connection, blocking in recv or asking again and again
//
// For a profile of the active side: CPUPROFILE=/tmp/nic.prof, built with --config=profile; and
// --only to choose contestants.
#include <CLI/CLI.hpp>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/base/units.h"
#include "nlohmann/json.hpp"
#include "tests/bench/nic_traffic.h"
#include "tests/bench/summary.h"
#include "tests/bench/tcp_peer.h"

namespace tokamak::bench {
namespace {

struct Settings {
  std::string here = "127.47.92.1";  // which nothing else on the machine is likely to use
  std::string there = "127.47.92.2";
  std::vector<uint32_t> messages = {64 << 10, 4 << 20};
  uint64_t in_flight = 4 << 20;  // bytes, at least two messages
  uint64_t arena = 64 << 20;     // bytes sent from and written to, round and round
  int rounds = 7;
  double seconds = 0.5;
  std::string only;
  bool json = false;
};

// Streams give bytes a second; ping-pongs two rows, the median and the 99th percentile, in seconds.
struct Contestant {
  std::string name;
  std::string against;  // the name of the TCP contestant that it is compared with
  bool bandwidth;
  std::function<absl::StatusOr<std::vector<double>>()> run;
};

struct Row {
  std::string name;
  std::string against;
  bool bandwidth;
  std::vector<double> values;  // of each round
};

class Bench final {
 public:
  explicit Bench(const Settings& settings) : settings_(settings), arena_(settings.arena, 0x5a) {}

  absl::Status Run() {
    if (absl::Status s = Start(); !s.ok()) return s;
    std::vector<Contestant> contestants = Contestants();
    std::vector<Row> rows;
    for (const Contestant& contestant : contestants) {
      rows.push_back({contestant.name, contestant.against, contestant.bandwidth, {}});
      if (contestant.bandwidth) continue;
      const std::string against = contestant.against.empty() ? "" : contestant.against + ", p99";
      rows.push_back({contestant.name + ", p99", against, false, {}});
    }
    for (int round = 0; round < settings_.rounds; ++round) {
      size_t row = 0;
      for (const Contestant& contestant : contestants) {
        const auto values = contestant.run();
        if (!values.ok()) {
          return absl::Status(values.status().code(), absl::StrCat(contestant.name, ": ", values.status().message()));
        }
        for (const double value : *values) rows[row++].values.push_back(value);
      }
    }
    Print(rows);
    return absl::OkStatus();
  }

 private:
  // Both fork, so first.
  absl::Status Start() {
    for (const std::string* ip : {&settings_.here, &settings_.there}) {
      if (const auto address = verbs::Address::Parse(*ip); !address.ok()) return address.status();
    }
    address_ = *verbs::Address::Parse(settings_.here);
    auto tcp = TcpPeer::Start();
    if (!tcp.ok()) return tcp.status();
    tcp_ = *std::move(tcp);
    auto peer = NicPeer::Start(*verbs::Address::Parse(settings_.there), settings_.arena);
    if (!peer.ok()) return peer.status();
    peer_ = *std::move(peer);
    return absl::OkStatus();
  }

  std::vector<Contestant> Contestants() {
    std::vector<Contestant> all;
    for (const uint32_t message : settings_.messages) {
      const std::string size = " " + base::FormatSize(message);
      const std::string tcp = "tcp stream" + size;
      all.push_back({"write" + size, tcp, true, [=] { return Stream(verbs::Opcode::kWrite, message); }});
      all.push_back({"read" + size, tcp, true, [=] { return Stream(verbs::Opcode::kRead, message); }});
      all.push_back({tcp, "", true, [=]() -> absl::StatusOr<std::vector<double>> {
                       const auto rate = tcp_->Stream(arena_, message, settings_.seconds);
                       if (!rate.ok()) return rate.status();
                       return std::vector<double>{*rate};
                     }});
    }
    for (const bool busy : {false, true}) {
      const std::string how = busy ? " busy" : " event";
      const std::string tcp = busy ? "tcp ping-pong busy" : "tcp ping-pong blocking";
      all.push_back({"send" + how + ", threads", tcp, false, [=] { return PingPong(busy, false); }});
      all.push_back({"send" + how + ", shared", tcp, false, [=] { return PingPong(busy, true); }});
      all.push_back({tcp, "", false, [=]() -> absl::StatusOr<std::vector<double>> {
                       return Percentiles(tcp_->PingPong(kSmallMessage, busy, settings_.seconds));
                     }});
    }
    std::vector<Contestant> chosen;
    for (Contestant& contestant : all) {
      if (absl::StrContains(contestant.name, settings_.only)) chosen.push_back(std::move(contestant));
    }
    return chosen;
  }

  absl::StatusOr<std::vector<double>> Stream(verbs::Opcode opcode, uint32_t message) {
    auto link = NicLink::Open(*peer_, address_, {}, absl::MakeSpan(arena_));
    if (!link.ok()) return link.status();
    NicLink::Stream stream;
    stream.opcode = opcode;
    stream.message = message;
    stream.in_flight = static_cast<uint32_t>(std::max<uint64_t>(2, settings_.in_flight / message));
    stream.seconds = settings_.seconds;
    const auto rate = (*link)->Run(stream);
    if (!rate.ok()) return rate.status();
    return std::vector<double>{*rate};
  }

  absl::StatusOr<std::vector<double>> PingPong(bool busy, bool one_thread) {
    Setting setting;
    setting.echo = true;
    setting.busy = busy;
    setting.one_thread = one_thread;
    auto link = NicLink::Open(*peer_, address_, setting, absl::MakeSpan(arena_));
    if (!link.ok()) return link.status();
    return Percentiles((*link)->PingPong(settings_.seconds));
  }

  static absl::StatusOr<std::vector<double>> Percentiles(const absl::StatusOr<std::vector<double>>& halves) {
    if (!halves.ok()) return halves.status();
    const Summary summary = Summarise(*halves);
    return std::vector<double>{summary.median, summary.p99};
  }

  // The median of `row` against its TCP contestant, round by round; 0 where that did not run.
  static double Ratio(const Row& row, const std::vector<Row>& rows) {
    for (const Row& other : rows) {
      if (row.against.empty() || other.name != row.against) continue;
      std::vector<double> ratios;
      for (size_t i = 0; i < row.values.size(); ++i) ratios.push_back(row.values[i] / other.values[i]);
      return Summarise(std::move(ratios)).median;
    }
    return 0;
  }

  void Print(const std::vector<Row>& rows) const {
    nlohmann::json all = nlohmann::json::array();
    for (const Row& row : rows) {
      const Summary summary = Summarise(row.values);
      const double ratio = Ratio(row, rows);
      const double unit = row.bandwidth ? 1e-9 : 1e6;
      std::cerr << absl::StrFormat("%-30s %8.2f %-4s (%.2f to %.2f)", row.name, summary.median * unit,
                                   row.bandwidth ? "GB/s" : "us", summary.least * unit, summary.most * unit);
      if (ratio > 0) std::cerr << absl::StrFormat("  %.2f of %s", ratio, row.against);
      std::cerr << "\n";
      all.push_back({{"name", row.name},
                     {"unit", row.bandwidth ? "bytes_per_second" : "seconds"},
                     {"rounds", summary.count},
                     {"median", summary.median},
                     {"least", summary.least},
                     {"most", summary.most}});
      if (ratio > 0) all.back()["ratio_to_tcp"] = ratio;
    }
    if (settings_.json) std::cout << all.dump(2) << "\n";
  }

  const Settings settings_;
  std::vector<uint8_t> arena_;
  verbs::Address address_;
  std::unique_ptr<TcpPeer> tcp_;
  std::unique_ptr<NicPeer> peer_;
};

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("The software NIC by itself, beside TCP: bandwidth of WRITE and READ, latency of SEND.", "nic");
  app.add_flag("--json", settings.json, "print JSON on standard output; the table goes to standard error");
  app.add_option("--rounds", settings.rounds, "of all contestants in turn")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--seconds", settings.seconds, "of each measurement")
      ->check(CLI::Range(0.01, 20.0))
      ->capture_default_str();
  app.add_option("--messages", settings.messages, "bytes of each WRITE, READ and TCP message")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--in-flight", settings.in_flight, "bytes of WRITEs or READs posted at once, at least two messages")
      ->capture_default_str();
  app.add_option("--arena", settings.arena, "bytes of memory on each side, used round and round")
      ->capture_default_str();
  app.add_option("--only", settings.only, "contestants with this in their names");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Bench(settings).Run();
  if (!status.ok()) std::cerr << "nic: " << status << std::endl;
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace tokamak::bench

int main(int argc, char** argv) { return tokamak::bench::Main(argc, argv); }
