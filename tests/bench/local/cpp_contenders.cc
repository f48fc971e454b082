// One turn of the C++ contenders of local.py:
//
//   cpp_contenders SOCKET SIZE TIMES FOLDER
//
// Prints a JSON object: for each contender how long each of TIMES operations took, in seconds.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/bench/baselines.h"
#include "tokamak/client.h"

namespace tokamak::bench {
namespace {

constexpr std::chrono::seconds kPatience(60);

[[noreturn]] void Fail(const std::string& what) {
  std::cerr << "cpp_contenders: " << what << std::endl;
  std::exit(1);
}

void Check(const Status& status) {
  if (!status.ok()) Fail(status.ToString());
}

template <typename T>
T Value(Result<T> result) {
  Check(result.status());
  return *std::move(result);
}

template <typename Operation>
double Time(Operation operation) {
  const auto begin = std::chrono::steady_clock::now();
  operation();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// A byte to another process and one back, over a Unix socket.
class RoundTrip final {
 public:
  RoundTrip() {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets_) != 0 || (child_ = fork()) < 0) Fail("no child");
    if (child_ != 0) {
      close(sockets_[1]);
      return;
    }
    close(sockets_[0]);
    char byte;
    while (read(sockets_[1], &byte, 1) == 1 && write(sockets_[1], &byte, 1) == 1) {
    }
    _exit(0);
  }
  ~RoundTrip() {
    close(sockets_[0]);
    waitpid(child_, nullptr, 0);
  }

  void Run() {
    char byte = 0;
    if (write(sockets_[0], &byte, 1) != 1 || read(sockets_[0], &byte, 1) != 1) Fail("the child is gone");
  }

 private:
  int sockets_[2];
  pid_t child_;
};

std::map<std::string, std::vector<double>> Measure(const std::string& socket, uint64_t size, int times,
                                                   const std::string& folder) {
  std::map<std::string, std::vector<double>> taken;
  RoundTrip round_trip;  // forks, before there are threads
  for (int i = 0; i < times; ++i) taken["Unix socket, a byte and back"].push_back(Time([&] { round_trip.Run(); }));

  Client maker = Value(Client::Connect(socket));
  Client getter = Value(Client::Connect(socket));
  const std::string bytes(size, 'x');
  std::vector<Buffer> held;
  for (int i = 0; i < times; ++i) {
    const ObjectId made = ObjectId::FromName("made in C++ " + std::to_string(i));
    taken["C++, create and seal"].push_back(Time([&] {
      MutableBuffer buffer = Value(maker.Create(made, size));
      Check(buffer.Seal());
    }));
    Check(maker.Delete(made));
    taken["C++, put"].push_back(Time([&] { Check(maker.Put(made, bytes)); }));
    taken["C++, first get"].push_back(Time([&] { held.push_back(Value(getter.Get(made, kPatience))); }));
    taken["C++, get of a held object"].push_back(Time([&] { held.push_back(Value(getter.Get(made, kPatience))); }));
    held.clear();
    Check(maker.Delete(made));
  }

  auto redis = StartRedisGet(folder, RedisOver::kUnixSocket);
  if (!redis.ok() || !(*redis)->Prepare(size).ok()) Fail("no Redis");
  for (int i = 0; i < times; ++i) taken["Redis GET, Unix socket"].push_back(*(*redis)->Fetch());
  return taken;
}

}  // namespace
}  // namespace tokamak::bench

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: cpp_contenders SOCKET SIZE TIMES FOLDER" << std::endl;
    return 2;
  }
  std::cout << nlohmann::json(
                   tokamak::bench::Measure(argv[1], std::strtoull(argv[2], nullptr, 10), std::atoi(argv[3]), argv[4]))
            << std::endl;
  return 0;
}
