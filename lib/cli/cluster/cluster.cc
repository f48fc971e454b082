#include "lib/cli/cluster/cluster.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/text/printable.h"
#include "lib/cli/common/output.h"
#include "lib/daemon/flags/secret_file.h"
#include "lib/os/file_descriptor.h"
#include "lib/os/private_file.h"
#include "lib/os/process/child_process.h"
#include "nlohmann/json.hpp"

namespace tokamak::cli {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr int kReadyMilliseconds = 60'000;
constexpr int64_t kLookMilliseconds = 1'000;  // without inotify
constexpr int kStopMilliseconds = 15'000;

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string StatePath(const std::string& folder) { return folder + "/cluster.json"; }

int64_t NowMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// Returns field 22 of /proc/PID/stat, counted after the name, which may contain anything; 0: no
// such process.
uint64_t StartTime(pid_t pid) {
  const std::string stat = ReadText(absl::StrCat("/proc/", pid, "/stat"));
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return 0;
  const std::vector<std::string> fields = absl::StrSplit(stat.substr(name_end + 2), ' ');
  uint64_t started = 0;
  if (fields.size() < 20 || !absl::SimpleAtoi(fields[19], &started)) return 0;
  return fields[0] == "Z" ? 0 : started;
}

// Looks beside this program, as Bazel lays them out, and in PATH.
std::string FindProgram(const std::string& name, const std::string& package) {
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& candidate : {here / name, here.parent_path() / package / name}) {
    if (fs::exists(candidate, error)) return candidate.string();
  }
  return name;
}

// Waits for `sign` in the log, or the program's end, then reads the last lines: they may tell why.
absl::Status AwaitReady(os::ChildProcess& child, const std::string& name, const std::string& log,
                        const std::string& sign, int interrupted) {
  const os::FileDescriptor changes(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  inotify_add_watch(changes.get(), fs::path(log).parent_path().c_str(), IN_MODIFY | IN_CREATE);
  const int64_t deadline = NowMilliseconds() + kReadyMilliseconds;
  while (true) {
    const bool running = child.running();
    const std::string text = ReadText(log);
    if (absl::StrContains(text, sign)) return absl::OkStatus();
    const int64_t left = deadline - NowMilliseconds();
    if (!running || left <= 0) {
      const std::vector<absl::string_view> lines = absl::StrSplit(absl::StripTrailingAsciiWhitespace(text), '\n');
      return absl::UnavailableError(
          absl::StrCat(name, left <= 0 ? " is not ready after a minute" : " did not start", ": ", lines.back()));
    }
    // poll ignores -1.
    pollfd waits[3] = {{changes.get(), POLLIN, 0}, {child.descriptor(), POLLIN, 0}, {interrupted, POLLIN, 0}};
    if (poll(waits, 3, static_cast<int>(std::min(left, kLookMilliseconds))) > 0) {
      if (waits[2].revents != 0) return absl::CancelledError("interrupted");
      char drained[4096];
      while (read(changes.get(), drained, sizeof drained) > 0) {
      }
    }
  }
}

std::string SecretPath(const std::string& folder) { return folder + "/secret"; }

json ProcessToJson(const ClusterProcess& process) {
  return {{"name", process.name}, {"pid", process.pid}, {"started", process.started}, {"socket", process.socket}};
}

std::optional<std::vector<ClusterProcess>> FromJson(const json& saved, const char* list) {
  if (!saved.is_object() || !saved.contains(list) || !saved[list].is_array()) return std::nullopt;
  std::vector<ClusterProcess> processes;
  for (const json& value : saved[list]) {
    const auto has = [&](const char* key, auto check) {
      return value.is_object() && value.contains(key) && check(value[key]);
    };
    const auto text = [](const json& field) { return field.is_string(); };
    const auto number = [](const json& field) { return field.is_number_unsigned(); };
    if (!has("name", text) || !has("pid", number) || !has("started", number) || !has("socket", text)) {
      return std::nullopt;
    }
    processes.push_back({value["name"], value["pid"], value["started"], value["socket"]});
  }
  return processes;
}

// Folders made above `folder`; empty: not saved.
std::optional<std::vector<std::string>> FoldersFromJson(const json& saved, const std::string& folder) {
  if (!saved.is_object() || !saved.contains("folders")) return std::vector<std::string>();
  if (!saved["folders"].is_array()) return std::nullopt;
  std::vector<std::string> folders;
  for (const json& value : saved["folders"]) {
    if (!value.is_string() || !absl::StartsWith(folder, value.get<std::string>() + "/")) return std::nullopt;
    folders.push_back(value);
  }
  return folders;
}

absl::Status Save(const Cluster& cluster, const std::string& folder) {
  json nodes = json::array();
  json helpers = json::array();
  for (const ClusterProcess& node : cluster.nodes) nodes.push_back(ProcessToJson(node));
  for (const ClusterProcess& helper : cluster.helpers) helpers.push_back(ProcessToJson(helper));
  const std::string path = StatePath(folder);
  const std::string part = path + ".part";
  std::ofstream file(part);
  file << json({{"nodes", nodes}, {"helpers", helpers}, {"folders", cluster.folders}}).dump(2) << "\n";
  file.close();
  if (file && chmod(part.c_str(), 0600) == 0 && rename(part.c_str(), path.c_str()) == 0) return absl::OkStatus();
  return absl::UnknownError(absl::StrCat("cannot write ", path));
}

// Checks that only this user owns and may change it.
absl::Status CheckOurs(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && info.st_uid == getuid() && (info.st_mode & 022) == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(path, " is not ours alone: name another --state folder"));
}

// Innermost first.
void RemoveFolders(const std::vector<std::string>& folders) {
  for (auto folder = folders.rbegin(); folder != folders.rend() && rmdir(folder->c_str()) == 0; ++folder) {
  }
}

// Makes a folder, and returns the ones made above it, outermost first. An error leaves none.
absl::StatusOr<std::vector<std::string>> MakeFolder(const std::string& path) {
  std::vector<std::string> above;
  std::error_code error;
  for (fs::path parent = fs::path(path).parent_path(); !fs::exists(parent, error); parent = parent.parent_path()) {
    if (error || parent == parent.parent_path()) break;  // mkdir reports the error
    above.insert(above.begin(), parent.string());
  }
  std::vector<std::string> made;
  for (const std::string& folder : above) {
    if (mkdir(folder.c_str(), 0700) == 0) {
      made.push_back(folder);
    } else if (errno != EEXIST) {
      const int reason = errno;
      RemoveFolders(made);
      return absl::UnknownError(absl::StrCat("cannot make ", folder, ": ", std::strerror(reason)));
    }
  }
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return made;
  const int reason = errno;
  RemoveFolders(made);
  return absl::UnknownError(absl::StrCat("cannot make ", path, ": ", std::strerror(reason)));
}

void Clean(const Cluster& cluster, const std::string& folder) {
  std::error_code error;
  for (const auto* processes : {&cluster.nodes, &cluster.helpers}) {
    for (const ClusterProcess& process : *processes) {
      fs::remove(process.socket, error);
      fs::remove(process.socket + ".lock", error);
      fs::remove(absl::StrCat(folder, "/", process.name, ".log"), error);
    }
  }
  fs::remove(SecretPath(folder), error);
  fs::remove(StatePath(folder), error);
  if (rmdir(folder.c_str()) == 0) RemoveFolders(cluster.folders);
}

bool Runs(const ClusterProcess& process) {
  return process.pid > 0 && process.started != 0 && StartTime(process.pid) == process.started;
}

// The process may not be our child.
void StopProcess(const ClusterProcess& process) {
  const os::FileDescriptor handle(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
  if (!handle.valid() || !Runs(process)) return;  // checked with the descriptor open: the same process
  for (const int signal : {SIGTERM, SIGKILL}) {
    syscall(SYS_pidfd_send_signal, handle.get(), signal, nullptr, 0);
    pollfd ended = {handle.get(), POLLIN, 0};
    if (poll(&ended, 1, kStopMilliseconds) > 0) return;
  }
}

// Lets one command at a time start or stop a cluster in a state folder.
absl::StatusOr<os::FileDescriptor> LockFolder(const std::string& folder) {
  os::FileDescriptor lock(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock.valid()) return absl::UnknownError(absl::StrCat("cannot open ", folder, ": ", std::strerror(errno)));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  return absl::AlreadyExistsError(absl::StrCat("another tok starts or stops a cluster in ", folder, ": wait for it"));
}

class Starter final {
 public:
  Starter(const ClusterSettings& settings, std::vector<std::string> made) : settings_(settings) {
    cluster_.folders = std::move(made);
  }

  absl::StatusOr<Cluster> Run() {
    if (absl::Status status = StartAll(); !status.ok()) {
      for (auto child = children_.rbegin(); child != children_.rend(); ++child) {
        (*child)->Stop(base::Milliseconds(kStopMilliseconds));
      }
      Clean(cluster_, settings_.folder);
      return status;
    }
    for (const auto& child : children_) child->Detach();
    return std::move(cluster_);
  }

 private:
  absl::Status StartAll() {
    if (absl::Status status = MakeSecret(); !status.ok()) return status;
    if (settings_.directory == "redis") {
      if (absl::Status status = StartRedis(); !status.ok()) return status;
    }
    Places where = settings_.places;
    if (where.devices.empty()) {
      auto network = FreeNetwork(where, settings_.nodes);
      if (!network.ok()) return network.status();
      where.network = *std::move(network);
    }
    const auto places = PlaceNodes(where, settings_.nodes);
    if (!places.ok()) return places.status();
    for (uint32_t i = 1; i <= settings_.nodes; ++i) {
      if (absl::Status status = StartNode(i, *places); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // By which the nodes know each other; other users of this machine reach their addresses, too.
  absl::Status MakeSecret() {
    const auto& extra = settings_.extra;
    const auto decides = [](const std::string& flag) {
      return flag == "--insecure" || absl::StartsWith(flag, "--secret-file");
    };
    if (std::any_of(extra.begin(), extra.end(), decides)) return absl::OkStatus();
    const std::string path = SecretPath(settings_.folder);
    unlink(path.c_str());  // an earlier cluster's
    if (absl::Status status = os::CreatePrivateFile(path, daemon::NewSecretFile()); !status.ok()) return status;
    secret_ = {"--secret-file", path};
    return absl::OkStatus();
  }

  std::string Path(const std::string& file) const { return settings_.folder + "/" + file; }

  absl::Status StartRedis() {
    const std::string socket = Path("redis.sock");
    ClusterProcess process{"redis", 0, 0, socket};
    // "Ready to accept connections" since Redis 7.2.
    return Start({"redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir",
                  settings_.folder},
                 "eady to accept connections", std::move(process), cluster_.helpers);
  }

  absl::Status StartNode(uint32_t index, const std::vector<NodePlace>& places) {
    const NodePlace& place = places[index - 1];
    ClusterProcess process{absl::StrCat("node", index), 0, 0, Path(absl::StrCat("node", index, ".sock"))};
    std::string directory = "tokd@" + places[0].listen.ToString();
    if (index == 1) directory = "serve";
    if (settings_.directory == "redis") directory = "redis@unix:" + Path("redis.sock");
    std::vector<std::string> argv = {FindProgram("tokd", "daemon"),
                                     "--name",
                                     process.name,
                                     "--listen",
                                     place.listen.ToString(),
                                     "--device",
                                     place.device,
                                     "--memory",
                                     settings_.memory,
                                     "--socket",
                                     process.socket,
                                     "--directory",
                                     directory};
    argv.insert(argv.end(), secret_.begin(), secret_.end());
    argv.insert(argv.end(), settings_.extra.begin(), settings_.extra.end());
    for (std::string& flag : argv) {
      // A % in FILE of "--pcap FILE" becomes the node's name.
      const size_t sign = flag.find('%');
      if (sign != std::string::npos) flag.replace(sign, 1, process.name);
    }
    return Start(std::move(argv), " ready: ", std::move(process), cluster_.nodes);
  }

  absl::Status Start(std::vector<std::string> argv, const std::string& sign, ClusterProcess process,
                     std::vector<ClusterProcess>& into) {
    os::ChildOptions options;
    options.argv = std::move(argv);
    options.output = Path(process.name + ".log");
    options.die_with_parent = settings_.end_with_us;
    unlink(options.output.c_str());  // an earlier cluster's
    into.push_back(process);         // first: its files go even if the start fails
    auto child = os::ChildProcess::Start(options);
    if (!child.ok()) {
      return absl::Status(child.status().code(), absl::StrCat(process.name, ": ", child.status().message(),
                                                              " (ci/setup --for demo installs all that is needed)"));
    }
    children_.push_back(*std::move(child));
    into.back().pid = children_.back()->pid();
    into.back().started = StartTime(into.back().pid);
    // If tok is killed, tok down finds the processes.
    if (absl::Status status = Save(cluster_, settings_.folder); !status.ok()) return status;
    return AwaitReady(*children_.back(), process.name, options.output, sign, settings_.interrupted);
  }

  const ClusterSettings& settings_;
  Cluster cluster_;
  std::vector<std::string> secret_;                          // flags
  std::vector<std::unique_ptr<os::ChildProcess>> children_;  // killed unless all went well
};

}  // namespace

std::string DefaultFolder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime != '\0') return absl::StrCat(runtime, "/tokamak");
  return absl::StrCat("/tmp/tokamak-", getuid());
}

absl::StatusOr<Cluster> StartCluster(const ClusterSettings& settings) {
  if (!base::IsUtf8(settings.folder)) {
    return absl::InvalidArgumentError(
        absl::StrCat(settings.folder, " is not UTF-8, in which the paths of a cluster are kept: name another --state"));
  }
  auto made = MakeFolder(settings.folder);
  if (!made.ok()) return made.status();
  if (absl::Status status = CheckOurs(settings.folder); !status.ok()) return status;
  const auto lock = LockFolder(settings.folder);
  if (!lock.ok()) return lock.status();
  if (const auto known = LoadCluster(settings.folder); known.ok()) {
    for (const auto* processes : {&known->nodes, &known->helpers}) {
      if (std::any_of(processes->begin(), processes->end(), Runs)) {
        return absl::AlreadyExistsError(absl::StrCat("a cluster runs already in ", settings.folder,
                                                     ": stop it with tok down, or name another --state"));
      }
    }
    if (made->empty()) made = known->folders;  // ended without tidying up
  } else if (!absl::IsNotFound(known.status())) {
    return known.status();
  }
  return Starter(settings, *std::move(made)).Run();
}

absl::StatusOr<Cluster> LoadCluster(const std::string& folder) {
  const std::string path = StatePath(folder);
  if (access(path.c_str(), R_OK) != 0) {
    if (errno != ENOENT) return absl::UnknownError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
    return absl::NotFoundError(
        absl::StrCat("no cluster was started in ", folder, ": start one with tok up, or name a --socket"));
  }
  // It names processes to end, files to remove, and nodes to trust.
  for (const std::string& part : {folder, path}) {
    if (absl::Status status = CheckOurs(part); !status.ok()) return status;
  }
  const json saved = json::parse(ReadText(path), nullptr, /*allow_exceptions=*/false);
  auto nodes = FromJson(saved, "nodes");
  auto helpers = FromJson(saved, "helpers");
  auto folders = FoldersFromJson(saved, folder);
  if (nodes.has_value() && helpers.has_value() && folders.has_value()) {
    return Cluster{*std::move(nodes), *std::move(helpers), *std::move(folders)};
  }
  return absl::DataLossError(absl::StrCat(path,
                                          " is damaged, so what tok up started is not known: look for it with "
                                          "pgrep -a tokd and end it, then remove the file"));
}

absl::StatusOr<uint32_t> StopCluster(const std::string& folder) {
  if (const auto known = LoadCluster(folder); !known.ok()) return known.status();
  const auto lock = LockFolder(folder);
  if (!lock.ok()) return lock.status();
  const auto cluster = LoadCluster(folder);
  if (!cluster.ok()) return cluster.status();
  uint32_t stopped = 0;
  // In reverse: the directory outlives its users.
  for (const auto* processes : {&cluster->nodes, &cluster->helpers}) {
    for (auto process = processes->rbegin(); process != processes->rend(); ++process) {
      if (!Runs(*process)) continue;
      StopProcess(*process);
      ++stopped;
    }
  }
  Clean(*cluster, folder);
  return stopped;
}

}  // namespace tokamak::cli
