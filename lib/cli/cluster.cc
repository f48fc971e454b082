#include "lib/cli/cluster.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/os/child_process.h"
#include "lib/os/file_descriptor.h"
#include "nlohmann/json.hpp"

namespace tokamak::cli {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr int kReadyMilliseconds = 60'000;
constexpr int kStopMilliseconds = 15'000;

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

int64_t NowMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// Field 22 of /proc/PID/stat; 0 when there is no such process. Fields are counted behind the name, which may hold anything.
uint64_t StartTime(pid_t pid) {
  const std::string stat = ReadText(absl::StrCat("/proc/", pid, "/stat"));
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return 0;
  const std::vector<std::string> fields = absl::StrSplit(stat.substr(name_end + 2), ' ');
  uint64_t started = 0;
  if (fields.size() < 20 || !absl::SimpleAtoi(fields[19], &started)) return 0;
  return fields[0] == "Z" ? 0 : started;
}

// A program of ours: beside this one, as Bazel lays them out, or in PATH.
std::string FindProgram(const std::string& name, const std::string& package) {
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& candidate : {here / name, here.parent_path() / package / name}) {
    if (fs::exists(candidate, error)) return candidate.string();
  }
  return name;
}

// Waits until the log says `sign`, or the program ends.
absl::Status AwaitReady(os::ChildProcess& child, const std::string& name, const std::string& log, const std::string& sign) {
  const os::FileDescriptor changes(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  inotify_add_watch(changes.get(), fs::path(log).parent_path().c_str(), IN_MODIFY | IN_CREATE);
  const int64_t deadline = NowMilliseconds() + kReadyMilliseconds;
  while (true) {
    const std::string text = ReadText(log);
    if (absl::StrContains(text, sign)) return absl::OkStatus();
    const int64_t left = deadline - NowMilliseconds();
    if (!child.running() || left <= 0) {
      const std::vector<absl::string_view> lines = absl::StrSplit(absl::StripTrailingAsciiWhitespace(text), '\n');
      return absl::UnavailableError(
          absl::StrCat(name, left <= 0 ? " is not ready after a minute" : " did not start", ": ", lines.back()));
    }
    pollfd waits[2] = {{changes.get(), POLLIN, 0}, {child.descriptor(), POLLIN, 0}};
    if (poll(waits, 2, static_cast<int>(left)) > 0) {
      char drained[4096];
      while (read(changes.get(), drained, sizeof drained) > 0) {
      }
    }
  }
}

json ToJson(const ClusterProcess& process) {
  return {{"name", process.name}, {"pid", process.pid}, {"started", process.started}, {"socket", process.socket}};
}

ClusterProcess FromJson(const json& value) {
  ClusterProcess process;
  process.name = value.value("name", "");
  process.pid = value.value("pid", 0);
  process.started = value.value("started", uint64_t{0});
  process.socket = value.value("socket", "");
  return process;
}

absl::Status Save(const Cluster& cluster, const std::string& folder) {
  json nodes = json::array();
  json helpers = json::array();
  for (const ClusterProcess& node : cluster.nodes) nodes.push_back(ToJson(node));
  for (const ClusterProcess& helper : cluster.helpers) helpers.push_back(ToJson(helper));
  std::ofstream file(folder + "/cluster.json");
  file << json({{"nodes", nodes}, {"helpers", helpers}}).dump(2) << "\n";
  file.close();
  return file ? absl::OkStatus() : absl::UnknownError(absl::StrCat("cannot write ", folder, "/cluster.json"));
}

bool Runs(const ClusterProcess& process) {
  return process.pid > 0 && process.started != 0 && StartTime(process.pid) == process.started;
}

// Stops one process that may not be our child.
void StopProcess(const ClusterProcess& process) {
  const os::FileDescriptor handle(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
  if (!handle.valid() || !Runs(process)) return;  // the descriptor was taken first, so it is the process that was asked about
  for (const int signal : {SIGTERM, SIGKILL}) {
    syscall(SYS_pidfd_send_signal, handle.get(), signal, nullptr, 0);
    pollfd ended = {handle.get(), POLLIN, 0};
    if (poll(&ended, 1, kStopMilliseconds) > 0) return;
  }
}

class Starter final {
 public:
  explicit Starter(const ClusterSettings& settings) : settings_(settings) {}

  absl::StatusOr<Cluster> Run() {
    if (settings_.directory == "redis") {
      if (absl::Status status = StartRedis(); !status.ok()) return status;
    }
    for (uint32_t i = 1; i <= settings_.nodes; ++i) {
      if (absl::Status status = StartNode(i); !status.ok()) return status;
    }
    if (absl::Status status = Save(cluster_, settings_.folder); !status.ok()) return status;
    for (const auto& child : children_) child->Detach();
    return std::move(cluster_);
  }

 private:
  std::string Path(const std::string& file) const { return settings_.folder + "/" + file; }

  absl::Status StartRedis() {
    const std::string socket = Path("redis.sock");
    ClusterProcess process{"redis", 0, 0, socket};
    return Start({"redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir",
                  settings_.folder},
                 "ready to accept connections", std::move(process), cluster_.helpers);
  }

  absl::Status StartNode(uint32_t index) {
    const std::string ip = absl::StrCat("127.0.0.", index);
    ClusterProcess process{absl::StrCat("node", index), 0, 0, Path(absl::StrCat("node", index, ".sock"))};
    std::string directory = absl::StrCat("tokd@127.0.0.1:", settings_.port);
    if (index == 1) directory = "serve";
    if (settings_.directory == "redis") directory = "redis@unix:" + Path("redis.sock");
    std::vector<std::string> argv = {FindProgram("tokd", "daemon"),
                                     "--name", process.name,
                                     "--listen", absl::StrCat(ip, ":", settings_.port),
                                     "--device", absl::StrCat("soft:udp@", ip, ":", settings_.udp_port),
                                     "--memory", settings_.memory,
                                     "--socket", process.socket,
                                     "--directory", directory};
    argv.insert(argv.end(), settings_.extra.begin(), settings_.extra.end());
    for (std::string& flag : argv) {
      // "--pcap FILE" gives each node a file of its own where FILE has a %.
      const size_t place = flag.find('%');
      if (place != std::string::npos) flag.replace(place, 1, process.name);
    }
    return Start(std::move(argv), " ready: ", std::move(process), cluster_.nodes);
  }

  absl::Status Start(std::vector<std::string> argv, const std::string& sign, ClusterProcess process,
                     std::vector<ClusterProcess>& into) {
    os::ChildOptions options;
    options.argv = std::move(argv);
    options.output = Path(process.name + ".log");
    auto child = os::ChildProcess::Start(options);
    if (!child.ok()) {
      return absl::Status(child.status().code(), absl::StrCat(process.name, ": ", child.status().message(),
                                                              " (ci/setup installs all that is needed)"));
    }
    if (absl::Status status = AwaitReady(**child, process.name, options.output, sign); !status.ok()) return status;
    process.pid = (*child)->pid();
    process.started = StartTime(process.pid);
    into.push_back(std::move(process));
    children_.push_back(*std::move(child));
    return absl::OkStatus();
  }

  const ClusterSettings& settings_;
  Cluster cluster_;
  std::vector<std::unique_ptr<os::ChildProcess>> children_;  // killed unless all went well
};

}  // namespace

std::string DefaultFolder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime != '\0') return absl::StrCat(runtime, "/tokamak");
  return absl::StrCat("/tmp/tokamak-", getuid());
}

absl::StatusOr<Cluster> StartCluster(const ClusterSettings& settings) {
  if (const auto running = LoadCluster(settings.folder); running.ok()) {
    for (const ClusterProcess& node : running->nodes) {
      if (Runs(node)) {
        return absl::AlreadyExistsError(
            absl::StrCat("a cluster runs already in ", settings.folder, ": stop it with tok down, or name another --state"));
      }
    }
  }
  if (mkdir(settings.folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::UnknownError(absl::StrCat("cannot make ", settings.folder, ": ", std::strerror(errno)));
  }
  struct stat info {};
  if (stat(settings.folder.c_str(), &info) != 0 || info.st_uid != getuid() || (info.st_mode & 022) != 0) {
    return absl::PermissionDeniedError(absl::StrCat(settings.folder, " is not ours alone: name another --state folder"));
  }
  for (const auto& entry : fs::directory_iterator(settings.folder)) {
    if (entry.path().extension() == ".log") fs::remove(entry.path());  // of an earlier cluster
  }
  return Starter(settings).Run();
}

absl::StatusOr<Cluster> LoadCluster(const std::string& folder) {
  const json saved = json::parse(ReadText(folder + "/cluster.json"), nullptr, /*allow_exceptions=*/false);
  if (!saved.is_object()) {
    return absl::NotFoundError(absl::StrCat("no cluster was started in ", folder, ": start one with tok up, or name a --socket"));
  }
  Cluster cluster;
  for (const json& node : saved.value("nodes", json::array())) cluster.nodes.push_back(FromJson(node));
  for (const json& helper : saved.value("helpers", json::array())) cluster.helpers.push_back(FromJson(helper));
  return cluster;
}

absl::StatusOr<uint32_t> StopCluster(const std::string& folder) {
  const auto cluster = LoadCluster(folder);
  if (!cluster.ok()) return cluster.status();
  uint32_t stopped = 0;
  // The last started first, so that the directory outlives those who leave it.
  for (const auto* processes : {&cluster->nodes, &cluster->helpers}) {
    for (auto process = processes->rbegin(); process != processes->rend(); ++process) {
      if (!Runs(*process)) continue;
      StopProcess(*process);
      ++stopped;
    }
  }
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string suffix = entry.path().extension().string();
    if (suffix == ".sock" || suffix == ".log" || suffix == ".lock" || entry.path().filename() == "cluster.json") fs::remove(entry.path(), error);
  }
  fs::remove(folder, error);  // where nothing else is in it
  return stopped;
}

}  // namespace tokamak::cli
