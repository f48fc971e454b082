// The patterns of docs/patterns.md between two processes, on any RDMA device:
//
//   run_patterns ring|table|server DEVICE           serves one user, and prints where
//   run_patterns ring|table|server DEVICE SERVICE   uses the service there
//
// DEVICE is a name of lib/verbs/open/open_device.h, such as soft:udp@127.0.0.1 or ibv:mlx5_0.
#include <cstdint>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "examples/patterns/key_value.h"
#include "examples/patterns/parameter_server.h"
#include "examples/patterns/ring.h"
#include "lib/os/epoll_loop.h"
#include "lib/verbs/open/open_device.h"
#include "lib/verbs/verbs.h"

namespace tokamak::example {
namespace {

constexpr base::Duration kPatience = base::Seconds(60);

constexpr uint64_t kRing = 64 << 10;  // bytes
constexpr size_t kMessages = 1000;
constexpr uint64_t kKeys = 200;
constexpr ModelShape kModel{1000, 1};
constexpr uint32_t kSteps = 40;

// One process's side: its loop, and its device on it.
struct Side {
  os::EpollLoop& loop;
  verbs::Device& device;

  absl::Status RunUntil(const std::function<bool()>& done) const {
    if (loop.RunUntil(done, loop.Now() + kPatience)) return absl::OkStatus();
    return absl::DeadlineExceededError("the other side takes too long");
  }
};

void PrintService(const verbs::Address& service) { std::cout << "service " << service.ToString() << std::endl; }

// ---- ring

absl::Status ReceiveMessages(const Side& side) {
  size_t messages = 0;
  uint64_t bytes = 0;
  RingReceiver receiver(side.loop, side.device, kRing, [&](absl::Span<const uint8_t> message) {
    ++messages;
    bytes += message.size();
  });
  if (absl::Status s = receiver.Listen(); !s.ok()) return s;
  PrintService(receiver.service());
  // The sender leaves when all were released, and with it the connection ends.
  if (absl::Status s = side.RunUntil([&] { return !receiver.status().ok(); }); !s.ok()) return s;
  if (messages != kMessages) return receiver.status();
  std::cout << "received " << messages << " messages, " << bytes << " bytes" << std::endl;
  return absl::OkStatus();
}

absl::Status SendMessages(const Side& side, const verbs::Address& service) {
  absl::Status failed;
  size_t sent = 0, released = 0;
  std::function<void()> send;
  RingSender sender(side.loop, side.device, kRing, [&] {
    ++released;  // each message by a WRITE of its own
    send();
  });
  send = [&] {
    while (sent < kMessages && failed.ok()) {
      const absl::Status status = sender.Send(std::vector<uint8_t>(sent * 7 % 3000, static_cast<uint8_t>(sent)));
      if (absl::IsResourceExhausted(status)) return;
      failed = status;
      ++sent;
    }
  };
  const absl::Status asked = sender.Connect(service, [&](const absl::Status& up) {
    failed = up;
    send();
  });
  if (!asked.ok()) return asked;
  const auto over = [&] { return released == kMessages || !failed.ok() || !sender.status().ok(); };
  if (absl::Status s = side.RunUntil(over); !s.ok()) return s;
  if (released != kMessages) return failed.ok() ? sender.status() : failed;
  std::cout << "sent " << sent << " messages" << std::endl;
  return absl::OkStatus();
}

// ---- table

std::vector<uint8_t> ValueOf(uint64_t key) { return std::vector<uint8_t>(key % 233, static_cast<uint8_t>(key)); }

// Until the process is ended: the owner does not notice its readers.
absl::Status OwnTable(const Side& side) {
  TableOwner owner(side.loop, side.device, TableShape());
  if (absl::Status s = owner.Listen(); !s.ok()) return s;
  for (uint64_t key = 1; key <= kKeys; ++key) {
    if (absl::Status s = owner.Put(key, ValueOf(key)); !s.ok()) return s;
  }
  PrintService(owner.service());
  side.loop.Run();
  return absl::OkStatus();
}

absl::Status ReadTable(const Side& side, const verbs::Address& service) {
  TableReader reader(side.loop, side.device, TableShape());
  absl::Status failed;
  uint64_t read = 0;
  std::function<void()> next = [&] {
    failed = reader.Get(read + 1, [&](const absl::StatusOr<absl::Span<const uint8_t>>& value) {
      failed = value.status();
      if (!failed.ok()) return;
      if (*value != absl::Span<const uint8_t>(ValueOf(read + 1))) failed = absl::DataLossError("another value");
      if (++read < kKeys) next();
    });
  };
  const absl::Status asked = reader.Connect(service, [&](const absl::Status& up) {
    failed = up;
    if (up.ok()) next();
  });
  if (!asked.ok()) return asked;
  if (absl::Status s = side.RunUntil([&] { return read == kKeys || !failed.ok(); }); !s.ok()) return s;
  if (failed.ok()) std::cout << "read " << read << " values" << std::endl;
  return failed;
}

// ---- parameter server

absl::Status Serve(const Side& side) {
  ParameterServer server(side.loop, side.device, kModel, 0.5F);
  if (absl::Status s = server.Listen(); !s.ok()) return s;
  PrintService(server.service());
  // The worker leaves after the last step.
  if (absl::Status s = side.RunUntil([&] { return !server.status().ok(); }); !s.ok()) return s;
  if (server.step() != kSteps) return server.status();
  std::cout << "served " << server.step() << " steps" << std::endl;
  return absl::OkStatus();
}

// Each parameter has its number, up to 16, as its target.
absl::Status Learn(const Side& side, const verbs::Address& service) {
  Worker worker(side.loop, side.device, kModel, 0, [](absl::Span<const float> model, absl::Span<float> gradient) {
    for (size_t i = 0; i < model.size(); ++i) gradient[i] = model[i] - static_cast<float>(i % 17);
  });
  if (absl::Status s = worker.Start(service, kSteps); !s.ok()) return s;
  if (absl::Status s = side.RunUntil([&] { return worker.done(); }); !s.ok()) return s;
  if (worker.status().ok()) std::cout << "learned: parameter 16 is " << worker.model()[16] << std::endl;
  return worker.status();
}

// ---- program

absl::Status Run(const std::string& pattern, const std::string& device_name, const std::string& service) {
  os::EpollLoop loop;
  verbs::OpenOptions options;
  options.loop = &loop;
  const auto opened = verbs::OpenDevice(device_name, options);
  if (!opened.ok()) return opened.status();
  const Side side{loop, (*opened)->device()};
  if (service.empty()) {
    if (pattern == "ring") return ReceiveMessages(side);
    if (pattern == "table") return OwnTable(side);
    return Serve(side);
  }
  const auto address = verbs::Address::Parse(service);
  if (!address.ok()) return address.status();
  if (pattern == "ring") return SendMessages(side, *address);
  if (pattern == "table") return ReadTable(side, *address);
  return Learn(side, *address);
}

}  // namespace
}  // namespace tokamak::example

int main(int argc, char** argv) {
  const std::string pattern = argc > 1 ? argv[1] : "";
  if ((argc != 3 && argc != 4) || (pattern != "ring" && pattern != "table" && pattern != "server")) {
    std::cerr << "usage: run_patterns ring|table|server DEVICE [SERVICE]\n"
                 "Without SERVICE it serves one user on DEVICE, such as soft:udp@127.0.0.1, and prints where; with it, "
                 "it is that user.\n";
    return 2;
  }
  const absl::Status status = tokamak::example::Run(pattern, argv[2], argc == 4 ? argv[3] : "");
  if (status.ok()) return 0;
  std::cerr << "run_patterns: " << status << std::endl;
  return 1;
}
