// checkpoint: training state is saved through the store, by another node, while training goes on.
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "examples/checkpoint/blocking_checkpoints.h"
#include "examples/checkpoint/folder.h"
#include "examples/checkpoint/manifest.h"
#include "examples/checkpoint/model.h"
#include "examples/checkpoint/saver.h"
#include "examples/checkpoint/snapshots.h"
#include "examples/checkpoint/training.h"
#include "examples/moments.h"
#include "examples/object_name.h"
#include "examples/units.h"
#include "tokamak/client.h"
#include "tokamak/status.h"

namespace tokamak::example {
namespace {

constexpr char kAbout[] = "checkpoint saves the state of a training run through Tokamak while the run goes on.";
constexpr char kFooter[] =
    "Example, with the two nodes of tok up --nodes 2 --memory 512MiB (their sockets are printed):\n"
    "  checkpoint save --socket NODE2.sock --run toy --folder /tmp/toy &\n"
    "  checkpoint train --socket NODE1.sock --run toy --folder /tmp/toy --resume\n"
    "Whatever is killed, start it again: the trainer with --resume.\n"
    "Exit codes: 0 done, 1 it failed (one line on standard error says why), 2 wrong flags.";
constexpr uint64_t kMaxState = uint64_t{64} << 30;

struct Flags {
  std::string socket;
  std::string run = "toy";
  std::string folder;
  uint64_t state = 64 << 20;  // bytes
  uint64_t piece = 4 << 20;   // the same
  double deadline = 30;       // seconds
  double idle = 600;          // the same
  uint32_t pieces_under_way = 4;
  bool resume = false;
  bool blocking = false;
  TrainingOptions training;
  MomentFlags moments;
};

int Fail(const Status& status, int code = 1) {
  std::cerr << "checkpoint: " << status.message() << std::endl;
  return code;
}

Status CheckFlags(const Flags& flags) {
  if (flags.state < Model::kRowBytes || flags.state > kMaxState) {
    return Status(StatusCode::kInvalidArgument,
                  absl::StrCat("--state: from ", FormatSize(Model::kRowBytes), " to ", FormatSize(kMaxState)));
  }
  if (const auto pieces = CountPieces(flags.state, flags.piece); !pieces.ok()) {
    return Status(StatusCode::kInvalidArgument, absl::StrCat("--piece: ", pieces.status().message()));
  }
  if ((flags.resume || flags.blocking) && flags.folder.empty()) {
    return Status(StatusCode::kInvalidArgument, "--resume and --blocking need the --folder with the checkpoints");
  }
  if (flags.socket.empty() && !flags.blocking && flags.training.every != 0) {
    return Status(StatusCode::kInvalidArgument,
                  "--socket: give that of this node's tokd (or --blocking, or --every 0)");
  }
  return CheckName("--run", flags.run);
}

Result<Client> Connect(const Flags& flags) {
  ClientOptions options;
  options.name = "checkpoint";
  return Client::Connect(flags.socket, options);
}

void Print(const Flags& flags, const Model& model, uint64_t first, const TrainingReport& report) {
  const char* const how = flags.training.every == 0 ? "none" : flags.blocking ? "blocking" : "non-blocking";
  std::cout << absl::StrFormat("steps %d to %d of run '%s', %s of state, checkpoints: %s\n", first, model.step(),
                               flags.run, FormatSize(model.state().size()), how);
  std::cout << "step alone: " << DescribeTimes(report.steps_alone) << " (" << report.steps_alone.size() << ")\n";
  std::cout << "step and checkpoint: " << DescribeTimes(report.steps_with_checkpoint) << " ("
            << report.steps_with_checkpoint.size() << ", " << report.skipped << " left out)\n";
  std::cout << absl::StrFormat("all steps: %.3f s, final checkpoint: %.3f s, loss %.4g\n", report.total, report.finish,
                               report.loss);
  std::cout << absl::StrFormat("state after step %d: xxh64 %016x\n", model.step(), model.Hash()) << std::flush;
}

// Loads the newest checkpoint into `model`, if there is one: the run begins there.
Status Resume(const Flags& flags, Model& model) {
  std::vector<std::string> skipped;
  const auto loaded = CheckpointFolder::LoadNewest(flags.folder, flags.run, model.StateToFill(), skipped);
  if (!loaded.ok()) return loaded.status();
  for (const std::string& why : skipped) std::cerr << "checkpoint: left out: " << why << std::endl;
  if (!loaded->has_value()) {
    std::cout << "no checkpoint in " << flags.folder << ": from step 0\n" << std::flush;
    return Status();
  }
  model.ContinueFrom((*loaded)->step);
  std::cout << "resumed from step " << model.step() << "\n" << std::flush;
  return Status();
}

int RunTrain(const Flags& flags) {
  if (Status s = CheckFlags(flags); !s.ok()) return Fail(s, 2);
  TrainingOptions options = flags.training;
  options.on_moment = ToDoAtMoments(flags.moments);
  Model model(flags.state);
  if (flags.resume) {
    if (Status s = Resume(flags, model); !s.ok()) return Fail(s);
  }
  if (model.step() > options.steps) {
    return Fail(Status(StatusCode::kInvalidArgument, absl::StrCat("--steps: the checkpoint is of step ", model.step(),
                                                                  " already: give a higher number")));
  }

  std::unique_ptr<CheckpointFolder> folder;
  std::unique_ptr<Client> client;
  std::unique_ptr<Checkpoints> checkpoints;
  if (options.every == 0) {
    // Without checkpoints.
  } else if (flags.blocking) {
    auto opened = CheckpointFolder::Open(flags.folder, flags.run, options.on_moment);
    if (!opened.ok()) return Fail(opened.status());
    folder = *std::move(opened);
    Manifest manifest;
    manifest.run = flags.run;
    manifest.resumed = flags.resume;
    manifest.bytes = model.state().size();
    manifest.piece_bytes = flags.piece;
    checkpoints = std::make_unique<BlockingCheckpoints>(*folder, manifest);
  } else {
    auto connected = Connect(flags);
    if (!connected.ok()) return Fail(connected.status());
    client = std::make_unique<Client>(*std::move(connected));
    SnapshotOptions snapshots;
    snapshots.run = flags.run;
    snapshots.state_bytes = model.state().size();
    snapshots.piece_bytes = flags.piece;
    snapshots.resumed = flags.resume;
    snapshots.deadline = Seconds(flags.deadline);
    snapshots.on_moment = options.on_moment;
    auto begun = Snapshots::Begin(*client, snapshots);
    if (!begun.ok()) return Fail(begun.status());
    checkpoints = *std::move(begun);
  }

  const uint64_t first = model.step();
  TrainingReport report;
  if (Status s = Train(model, checkpoints.get(), options, report); !s.ok()) {
    return Fail(Status(s.code(), absl::StrCat(s.message(), " (training ended at step ", model.step(),
                                              "; start it again with --resume)")));
  }
  Print(flags, model, first, report);
  return 0;
}

int RunSave(const Flags& flags) {
  if (Status s = CheckName("--run", flags.run); !s.ok()) return Fail(s, 2);
  const OnMoment on_moment = ToDoAtMoments(flags.moments);
  auto folder = CheckpointFolder::Open(flags.folder, flags.run, on_moment);
  if (!folder.ok()) return Fail(folder.status());
  auto client = Connect(flags);
  if (!client.ok()) return Fail(client.status());
  SaverOptions options;
  options.run = flags.run;
  options.pieces_under_way = flags.pieces_under_way;
  options.idle = Seconds(flags.idle);
  options.on_moment = on_moment;
  Saver saver(*client, **folder, options);
  if (Status s = saver.Run(); !s.ok()) return Fail(s);
  std::cout << "saved " << saver.saved() << " checkpoints of run '" << flags.run << "', " << FormatSize(saver.bytes())
            << "; the newest is of step " << (*folder)->newest()->step << std::endl;
  return 0;
}

int Run(int argc, char** argv) {
  Flags flags;
  CLI::App app(kAbout, "checkpoint");
  app.footer(kFooter);
  app.require_subcommand(1);

  CLI::App* const train = app.add_subcommand("train", "train a toy model, and take a snapshot every few steps");
  train->add_option("--socket", flags.socket, "the Unix socket of this node's tokd");
  train->add_option("--run", flags.run, "the run's name, the same for both")->capture_default_str();
  AddSize(*train, "--state", flags.state, "size of weights and momentum together", "64MiB");
  train->add_option("--steps", flags.training.steps, "steps of the whole run")->capture_default_str();
  train->add_option("--every", flags.training.every, "steps between two checkpoints; 0: none at all")
      ->capture_default_str();
  AddSize(*train, "--piece", flags.piece, "a snapshot is put in objects of this size", "4MiB");
  train->add_option("--folder", flags.folder, "where the checkpoints are, for --resume and --blocking");
  train->add_flag("--resume", flags.resume, "begin from the newest whole checkpoint, if there is one");
  train->add_flag("--blocking", flags.blocking, "write to --folder in the loop, without a store: to compare");
  AddTime(*train, "--deadline", flags.deadline, "for taking the run over, and for the saver in the end", "30s");
  AddMomentFlags(*train, flags.moments);

  CLI::App* const save = app.add_subcommand("save", "on another node: write a run's snapshots to disk, until the last");
  save->add_option("--socket", flags.socket, "the Unix socket of this node's tokd")->required();
  save->add_option("--run", flags.run, "the run's name, the same for both")->capture_default_str();
  save->add_option("--folder", flags.folder, "where the latest two checkpoints are kept")->required();
  save->add_option("--pieces-under-way", flags.pieces_under_way, "pieces that are pulled at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  AddTime(*save, "--idle", flags.idle, "give up when no snapshot comes for this long", "10min");
  AddMomentFlags(*save, flags.moments);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return Fail(Status(StatusCode::kInvalidArgument, absl::StrCat(error.what(), " (see checkpoint --help)")), 2);
  }
  return train->parsed() ? RunTrain(flags) : RunSave(flags);
}

}  // namespace
}  // namespace tokamak::example

int main(int argc, char** argv) {
  try {
    return tokamak::example::Run(argc, argv);
  } catch (const std::exception& error) {  // such as no memory for the state
    std::cerr << "checkpoint: " << error.what() << std::endl;
    return 1;
  }
}
