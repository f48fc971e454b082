// The cost of 1,000 queue pairs of one device: memory of each, on both sides, and bandwidth of all
// together against that of one.
//
//   bazel run -c opt //tests/bench:queue_pairs -- [--json] [--rounds N] [--seconds S]
//
// Two processes, soft:udp on two loopback addresses. One queue pair and many take turns, with the
// same messages and the same number of them in flight altogether; with many, the queue pairs take
// turns as well.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "lib/base/units.h"
#include "nlohmann/json.hpp"
#include "tests/bench/nic_traffic.h"
#include "tests/bench/summary.h"

namespace tokamak::bench {
namespace {

struct Settings {
  std::string here = "127.47.93.1";  // which nothing else on the machine is likely to use
  std::string there = "127.47.93.2";
  uint32_t queue_pairs = 1000;
  uint32_t message = 64 << 10;
  uint32_t in_flight = 1000;  // messages
  uint32_t depth = 64;
  int rounds = 7;
  double seconds = 1;
  bool read = false;
  bool json = false;
};

struct Measured {
  std::vector<double> one, many, ratio;  // bytes a second of each round
  MemoryUse here, there;
  uint64_t retransmitted = 0;
  uint64_t timeouts = 0;
};

absl::Status Round(const Settings& settings, NicPeer& peer, absl::Span<uint8_t> arena, Measured* measured) {
  const verbs::Address address = *verbs::Address::Parse(settings.here);
  NicLink::Stream stream;
  stream.opcode = settings.read ? verbs::Opcode::kRead : verbs::Opcode::kWrite;
  stream.message = settings.message;
  stream.in_flight = settings.in_flight;
  stream.seconds = settings.seconds;
  for (const uint32_t queue_pairs : {1u, settings.queue_pairs}) {
    Setting setting;
    setting.queue_pairs = queue_pairs;
    setting.depth = std::max(settings.depth, (settings.in_flight + queue_pairs - 1) / queue_pairs);
    auto link = NicLink::Open(peer, address, setting, arena);
    if (!link.ok()) return link.status();
    const auto rate = (*link)->Run(stream);
    if (!rate.ok()) return rate.status();
    if (queue_pairs == 1) {
      measured->one.push_back(*rate);
      continue;
    }
    measured->many.push_back(*rate);
    measured->ratio.push_back(measured->many.back() / measured->one.back());
    // The first round's: later ones find memory that malloc kept.
    if (measured->many.size() == 1) {
      measured->here = (*link)->here();
      measured->there = (*link)->there();
    }
    measured->retransmitted += (*link)->end().counters().queue_pairs.packets_retransmitted;
    measured->timeouts += (*link)->end().counters().queue_pairs.timeouts;
  }
  return absl::OkStatus();
}

void Print(const Settings& settings, const Measured& measured) {
  const Summary one = Summarise(measured.one);
  const Summary many = Summarise(measured.many);
  const Summary ratio = Summarise(measured.ratio);
  const auto rate = [](const char* name, const Summary& s) {
    std::cerr << absl::StrFormat("%-18s %6.2f GB/s (%.2f to %.2f)\n", name, s.median * 1e-9, s.least * 1e-9,
                                 s.most * 1e-9);
  };
  const auto memory = [](const char* side, const MemoryUse& use) {
    std::cerr << absl::StrFormat("%-18s %6d B allocated, %d B resident for each queue pair\n", side, use.allocated,
                                 use.resident);
  };
  std::cerr << absl::StrFormat("%s of %s, %d in flight, %d rounds\n", settings.read ? "READ" : "WRITE",
                               base::FormatSize(settings.message), settings.in_flight, one.count);
  rate("1 queue pair", one);
  rate(absl::StrFormat("%d queue pairs", settings.queue_pairs).c_str(), many);
  std::cerr << absl::StrFormat("%-18s %6.2f      (%.2f to %.2f); %d packets sent again, %d time-outs\n", "many / one",
                               ratio.median, ratio.least, ratio.most, measured.retransmitted, measured.timeouts);
  memory("requester's side", measured.here);
  memory("responder's side", measured.there);
  if (!settings.json) return;
  const auto summary = [](const Summary& s) {
    return nlohmann::json{{"median", s.median}, {"least", s.least}, {"most", s.most}};
  };
  const auto use = [](const MemoryUse& m) {
    return nlohmann::json{{"allocated", m.allocated}, {"resident", m.resident}};
  };
  std::cout << nlohmann::json{{"queue_pairs", settings.queue_pairs},
                              {"message", settings.message},
                              {"in_flight", settings.in_flight},
                              {"rounds", one.count},
                              {"one_bytes_per_second", summary(one)},
                              {"many_bytes_per_second", summary(many)},
                              {"many_to_one", summary(ratio)},
                              {"requester_bytes_per_queue_pair", use(measured.here)},
                              {"responder_bytes_per_queue_pair", use(measured.there)},
                              {"packets_retransmitted", measured.retransmitted},
                              {"timeouts", measured.timeouts}}
                   .dump(2)
            << "\n";
}

absl::Status Run(const Settings& settings) {
  const uint64_t arena_bytes = 64 << 20;
  if (settings.message == 0 || settings.message > arena_bytes) {
    return absl::InvalidArgumentError("a message has 1 B to 64 MiB");
  }
  auto peer = NicPeer::Start(*verbs::Address::Parse(settings.there), arena_bytes);  // first: it forks
  if (!peer.ok()) return peer.status();
  std::vector<uint8_t> arena(arena_bytes, 0x5a);
  Measured measured;
  for (int round = 0; round < settings.rounds; ++round) {
    if (absl::Status s = Round(settings, **peer, absl::MakeSpan(arena), &measured); !s.ok()) return s;
  }
  Print(settings, measured);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Many queue pairs of one software NIC: memory, and bandwidth against that of one.", "queue_pairs");
  app.add_flag("--json", settings.json, "print JSON on standard output; the table goes to standard error");
  app.add_flag("--read", settings.read, "READs instead of WRITEs");
  app.add_option("--queue-pairs", settings.queue_pairs)->check(CLI::Range(2, 65000))->capture_default_str();
  app.add_option("--message", settings.message, "bytes")->capture_default_str();
  app.add_option("--in-flight", settings.in_flight, "messages, over all queue pairs")
      ->check(CLI::Range(1, 16384))
      ->capture_default_str();
  app.add_option("--depth", settings.depth, "requests that each send queue and each receive queue holds, where enough")
      ->capture_default_str();
  app.add_option("--rounds", settings.rounds)->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--seconds", settings.seconds, "of each measurement")
      ->check(CLI::Range(0.01, 20.0))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Run(settings);
  if (!status.ok()) std::cerr << "queue_pairs: " << status << std::endl;
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace tokamak::bench

int main(int argc, char** argv) { return tokamak::bench::Main(argc, argv); }
