// How fast the nodes of a cluster get objects of each other: the cluster benchmark under MPI.
//
//   mpirun -np 4 bazel-bin/tests/bench/cluster/cluster --patterns all-to-all --csv out.csv
//
// ci/cluster builds it and runs it with the options that suit one machine. Every rank is a node in
// its own process; what the ranks do is in driver.h, what is compared in settings.cc.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/log.h"
#include "lib/cli/cluster/places.h"
#include "lib/os/epoll_loop.h"
#include "mpi.h"
#include "tests/bench/cluster/driver.h"
#include "tests/bench/cluster/mpi_collective.h"
#include "tests/bench/cluster/report.h"
#include "tests/bench/cluster/settings.h"
#include "tests/bench/cluster/socket_puller.h"
#include "tests/bench/own_node.h"
#include "tests/bench/streams/kernel_streams.h"

namespace tokamak::bench {
namespace {

// One line of a rank to all, before the loops run.
constexpr size_t kLineSize = 256;
using Line = std::array<char, kLineSize>;

Line ToLine(const std::string& text) {
  Line line{};
  text.copy(line.data(), line.size() - 1);
  return line;
}

std::vector<std::string> TellAll(const std::string& text, int ranks) {
  const Line mine = ToLine(text);
  std::vector<Line> all(static_cast<size_t>(ranks));
  MPI_Allgather(mine.data(), kLineSize, MPI_CHAR, all.data(), kLineSize, MPI_CHAR, MPI_COMM_WORLD);
  std::vector<std::string> texts;
  for (const Line& line : all) texts.emplace_back(line.data());
  return texts;
}

// The first rank's trouble, on all of them.
absl::Status Agree(const absl::Status& mine, int ranks) {
  const std::vector<std::string> all = TellAll(mine.ok() ? "" : std::string(mine.message()), ranks);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank].empty()) return absl::UnavailableError(absl::StrCat("rank ", rank, ": ", all[rank]));
  }
  return absl::OkStatus();
}

// Which of the ranks on this host it is, and on how many hosts they are.
struct Neighbours {
  uint32_t own = 0;
  uint32_t hosts = 1;
};

Neighbours FindNeighbours() {
  MPI_Comm host = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  int own = 0;
  MPI_Comm_rank(host, &own);
  MPI_Comm_free(&host);
  int first = own == 0 ? 1 : 0, hosts = 0;
  MPI_Allreduce(&first, &hosts, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return {static_cast<uint32_t>(own), static_cast<uint32_t>(hosts)};
}

absl::StatusOr<cli::NodePlace> FindPlace(const Settings& settings, const Neighbours& neighbours) {
  if (settings.devices.empty() && neighbours.hosts > 1) {
    return absl::InvalidArgumentError("the ranks are on several hosts: name each host's --device");
  }
  cli::Places places;
  places.devices = settings.devices;
  places.port = settings.port;
  auto placed = cli::PlaceNodes(places, neighbours.own + 1);
  if (!placed.ok()) return placed.status();
  return placed->back();
}

absl::Status CanWrite(const std::string& path) {
  if (path.empty() || std::ofstream(path, std::ios::app).good()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("cannot write to ", path, ": name a file in a folder of yours"));
}

// This rank's node, with what it offers to others.
class Rank final {
 public:
  Rank(Settings settings, int rank, int ranks, std::string command)
      : settings_(std::move(settings)), rank_(rank), ranks_(ranks), command_(std::move(command)) {}

  absl::Status Run() {
    neighbours_ = FindNeighbours();
    absl::Status status = PlanAll();
    if (absl::Status all = Agree(status, ranks_); !all.ok()) return all;
    if (absl::Status all = Start(); !all.ok()) return all;
    auto results = Measure();
    if (!results.ok()) return results.status();
    return rank_ == 0 ? Tell(*std::move(results)) : absl::OkStatus();
  }

 private:
  absl::Status PlanAll() {
    auto plan = MakePlan(settings_, static_cast<uint32_t>(ranks_));
    if (!plan.ok()) return plan.status();
    plan_ = *std::move(plan);
    auto place = FindPlace(settings_, neighbours_);
    if (!place.ok()) return place.status();
    place_ = *std::move(place);
    if (rank_ != 0) return absl::OkStatus();
    if (absl::Status status = CanWrite(settings_.csv); !status.ok()) return status;
    return CanWrite(settings_.json);
  }

  // Rank 0 first: it has the directory.
  absl::Status Start() {
    absl::Status status = rank_ == 0 ? StartNode("serve") : absl::OkStatus();
    if (absl::Status all = Agree(status, ranks_); !all.ok()) return all;
    const std::string first = TellAll(place_.listen.ToString(), ranks_).front();
    if (rank_ != 0) status = StartNode(absl::StrCat("tokd@", first));
    if (status.ok()) status = StartSocket(SocketVariant::kOriginal, &original_);
    if (status.ok()) status = StartSocket(SocketVariant::kTuned, &tuned_);
    if (absl::Status all = Agree(status, ranks_); !all.ok()) return all;
    AddPullers();
    return absl::OkStatus();
  }

  absl::Status StartNode(const std::string& directory) {
    // No client comes: the path is needed until the node listens at it, and no longer.
    std::string folder = (std::filesystem::temp_directory_path() / "tokamak-cluster-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) return absl::UnavailableError("cannot make a folder for temporary files");
    std::vector<std::string> flags = {
        "--listen",           place_.listen.ToString(),
        "--device",           place_.device,
        "--socket",           folder + "/node.sock",
        "--directory",        directory,
        "--memory",           absl::StrCat(MemoryOfARank(settings_, plan_, static_cast<uint32_t>(ranks_))),
        "--registration",     settings_.registration,
        "--detection",        settings_.detection,
        "--engines",          absl::StrCat(settings_.engines),
        "--bulk-queue-pairs", absl::StrCat(settings_.bulk_queue_pairs),
        "--chunk-size",       absl::StrCat(settings_.chunk_size),
        "--chunks-in-flight", absl::StrCat(settings_.chunks_in_flight)};
    if (!place_.listen.is_loopback()) flags.push_back("--insecure");
    if (!settings_.congestion.empty()) flags.insert(flags.end(), {"--congestion", settings_.congestion});
    auto node = OwnNode::Start(loop_, flags);
    std::error_code error;
    std::filesystem::remove_all(folder, error);
    if (!node.ok()) return node.status();
    node_ = *std::move(node);
    return absl::OkStatus();
  }

  absl::Status StartSocket(SocketVariant variant, std::unique_ptr<SocketTransfer>* into) {
    auto transfer = SocketTransfer::Listen(loop_, node_->node().store(),
                                           std::make_unique<KernelStreams>(loop_, place_.listen), variant);
    if (!transfer.ok()) return transfer.status();
    *into = *std::move(transfer);
    return absl::OkStatus();
  }

  std::unique_ptr<Puller> MakeSocketPuller(SocketTransfer& transfer) {
    std::vector<verbs::Address> peers;
    for (const std::string& text : TellAll(transfer.address().ToString(), ranks_)) {
      peers.push_back(*verbs::Address::Parse(text));
    }
    return std::make_unique<SocketPuller>(transfer, std::move(peers));
  }

  void AddPullers() {
    auto original = MakeSocketPuller(*original_);
    auto tuned = MakeSocketPuller(*tuned_);
    for (const Contender& contender : plan_.contenders) {
      if (contender.protocol == "socket") {
        pullers_.push_back(std::move(contender.variant == "original" ? original : tuned));
      } else {
        pullers_.push_back(std::make_unique<NodePuller>(node_->node(), ProtocolOf(contender.protocol)));
      }
    }
  }

  static transport::Protocol ProtocolOf(const std::string& name) {
    if (name == "eager") return transport::Protocol::kEager;
    if (name == "read") return transport::Protocol::kRead;
    if (name == "write") return transport::Protocol::kWrite;
    return transport::Protocol::kAuto;
  }

  absl::StatusOr<std::vector<CaseResult>> Measure() {
    constexpr base::Duration kJoinDeadline = base::Seconds(60);
    const bool joined =
        loop_.RunUntil([this] { return node_->node().membership().joined(); }, loop_.Now() + kJoinDeadline);
    if (!joined) {
      Abort(absl::DeadlineExceededError(absl::StrCat("rank ", rank_, " could not enter the directory of rank 0")));
    }
    MpiCollective collective(loop_, MPI_COMM_WORLD);
    std::vector<Puller*> pullers;
    for (const auto& puller : pullers_) pullers.push_back(puller.get());
    size_t over = 0;
    Driver::Progress progress;
    if (rank_ == 0) {
      progress = [&](const CaseResult& result) {
        std::cerr << ++over << " of " << plan_.cases.size() << ": "
                  << Report::Line(result, plan_.contenders[result.what.contender]) << std::endl;
      };
    }
    absl::StatusOr<std::vector<CaseResult>> answer = absl::InternalError("no answer");
    Driver driver(loop_, collective, node_->node(), std::move(pullers), plan_, std::move(progress));
    driver.Run([&](const absl::StatusOr<std::vector<CaseResult>>& results) {
      answer = results;
      loop_.Stop();
    });
    loop_.Run();
    if (driver.lost_others()) Abort(answer.status());
    return answer;
  }

  // Ends all ranks: the others wait for this one in vain.
  static void Abort(const absl::Status& status) {
    std::cerr << "cluster: " << status.message() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }

  absl::Status Tell(std::vector<CaseResult> results) {
    const Report report(
        {static_cast<uint32_t>(ranks_), neighbours_.hosts, DescribeMachine(), DescribeKernel(), command_},
        plan_.contenders, std::move(results));
    return report.Tell(std::cout, settings_);
  }

  const Settings settings_;
  const int rank_;
  const int ranks_;
  const std::string command_;
  Neighbours neighbours_;
  Plan plan_;
  cli::NodePlace place_;
  os::EpollLoop loop_;
  std::unique_ptr<OwnNode> node_;
  std::unique_ptr<SocketTransfer> original_;
  std::unique_ptr<SocketTransfer> tuned_;
  std::vector<std::unique_ptr<Puller>> pullers_;
};

int Main(int argc, char** argv) {
  int threads = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const ParsedSettings parsed = ParseSettings(argc, argv);
  // Ranks may have flags of their own: all leave where one does, and the first that does says why.
  const int mine = parsed.run ? 0 : 1 + parsed.exit_code;
  std::vector<int> all(static_cast<size_t>(ranks));
  MPI_Allgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD);
  const auto first = std::find_if(all.begin(), all.end(), [](int code) { return code != 0; });
  if (first != all.end()) {
    if (first - all.begin() == rank) (parsed.exit_code == 0 ? std::cout : std::cerr) << parsed.text << std::flush;
    MPI_Finalize();
    return *first - 1;
  }
  std::string command = absl::StrCat("mpirun -np ", ranks);
  for (int i = 0; i < argc; ++i) absl::StrAppend(&command, " ", i == 0 ? "cluster" : argv[i]);
  absl::Status status;
  {
    Rank own(parsed.settings, rank, ranks, command);
    status = own.Run();
    if (!status.ok() && rank == 0) std::cerr << "cluster: " << status.message() << std::endl;
  }
  MPI_Finalize();
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace tokamak::bench

int main(int argc, char** argv) {
  tokamak::base::SetLogLevel(tokamak::base::Severity::kWarning);
  return tokamak::bench::Main(argc, argv);
}
