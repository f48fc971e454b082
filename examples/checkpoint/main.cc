// checkpoint: training state is saved through the store, by another node, while training goes on.
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
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
#include "lib/base/units.h"
#include "lib/client/client.h"

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
  std::string state = "64MiB";
  std::string piece = "4MiB";
  std::string deadline = "30s";
  std::string idle = "10min";
  uint32_t pieces_under_way = 4;
  bool resume = false;
  bool blocking = false;
  TrainingOptions training;
  MomentFlags moments;
};

struct Sizes {
  uint64_t state = 0;
  uint64_t piece = 0;
  base::Duration deadline;
};

int Fail(const absl::Status& status, int code = 1) {
  std::cerr << "checkpoint: " << status.message() << std::endl;
  return code;
}

absl::StatusOr<Sizes> CheckFlags(const Flags& flags) {
  Sizes sizes;
  const auto state = base::ParseSize(flags.state);
  const auto piece = base::ParseSize(flags.piece);
  const auto deadline = base::ParseDuration(flags.deadline);
  if (!state.ok()) return absl::InvalidArgumentError(absl::StrCat("--state: ", state.status().message()));
  if (!piece.ok()) return absl::InvalidArgumentError(absl::StrCat("--piece: ", piece.status().message()));
  if (!deadline.ok()) return absl::InvalidArgumentError(absl::StrCat("--deadline: ", deadline.status().message()));
  if (*state < Model::kRowBytes || *state > kMaxState) {
    return absl::InvalidArgumentError(
        absl::StrCat("--state: from ", base::FormatSize(Model::kRowBytes), " to ", base::FormatSize(kMaxState)));
  }
  if (const auto pieces = CountPieces(*state, *piece); !pieces.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--piece: ", pieces.status().message()));
  }
  if ((flags.resume || flags.blocking) && flags.folder.empty()) {
    return absl::InvalidArgumentError("--resume and --blocking need the --folder with the checkpoints");
  }
  if (flags.socket.empty() && !flags.blocking && flags.training.every != 0) {
    return absl::InvalidArgumentError("--socket: give that of this node's tokd (or --blocking, or --every 0)");
  }
  if (absl::Status s = CheckName("--run", flags.run); !s.ok()) return s;
  return Sizes{*state, *piece, *deadline};
}

absl::StatusOr<client::Client> Connect(const Flags& flags) {
  client::ClientOptions options;
  options.name = "checkpoint";
  return client::Client::Connect(flags.socket, options);
}

void Print(const Flags& flags, const Model& model, uint64_t first, const TrainingReport& report) {
  const char* const how = flags.training.every == 0 ? "none" : flags.blocking ? "blocking" : "non-blocking";
  std::cout << absl::StrFormat("steps %d to %d of run '%s', %s of state, checkpoints: %s\n", first, model.step(),
                               flags.run, base::FormatSize(model.state().size()), how);
  std::cout << "step alone: " << DescribeTimes(report.steps_alone) << " (" << report.steps_alone.size() << ")\n";
  std::cout << "step and checkpoint: " << DescribeTimes(report.steps_with_checkpoint) << " ("
            << report.steps_with_checkpoint.size() << ", " << report.skipped << " left out)\n";
  std::cout << absl::StrFormat("all steps: %.3f s, final checkpoint: %.3f s, loss %.4g\n", report.total, report.finish,
                               report.loss);
  std::cout << absl::StrFormat("state after step %d: xxh64 %016x\n", model.step(), model.Hash()) << std::flush;
}

// Where the run is to begin.
absl::Status Resume(const Flags& flags, Model& model) {
  std::vector<std::string> skipped;
  const auto loaded = CheckpointFolder::LoadNewest(flags.folder, flags.run, model.StateToFill(), skipped);
  if (!loaded.ok()) return loaded.status();
  for (const std::string& why : skipped) std::cerr << "checkpoint: left out: " << why << std::endl;
  if (!loaded->has_value()) {
    std::cout << "no checkpoint in " << flags.folder << ": from step 0\n" << std::flush;
    return absl::OkStatus();
  }
  model.ContinueFrom((*loaded)->step);
  std::cout << "resumed from step " << model.step() << "\n" << std::flush;
  return absl::OkStatus();
}

int RunTrain(const Flags& flags) {
  const auto sizes = CheckFlags(flags);
  if (!sizes.ok()) return Fail(sizes.status(), 2);
  TrainingOptions options = flags.training;
  options.on_moment = ToDoAtMoments(flags.moments);
  Model model(sizes->state);
  if (flags.resume) {
    if (absl::Status s = Resume(flags, model); !s.ok()) return Fail(s);
  }
  if (model.step() > options.steps) {
    return Fail(absl::InvalidArgumentError(
        absl::StrCat("--steps: the checkpoint is of step ", model.step(), " already: give a higher number")));
  }

  std::unique_ptr<CheckpointFolder> folder;
  std::unique_ptr<client::Client> client;
  std::unique_ptr<Checkpoints> checkpoints;
  if (options.every == 0) {
    // Nothing is kept.
  } else if (flags.blocking) {
    auto opened = CheckpointFolder::Open(flags.folder, flags.run, options.on_moment);
    if (!opened.ok()) return Fail(opened.status());
    folder = *std::move(opened);
    Manifest manifest;
    manifest.run = flags.run;
    manifest.resumed = flags.resume;
    manifest.bytes = model.state().size();
    manifest.piece_bytes = sizes->piece;
    checkpoints = std::make_unique<BlockingCheckpoints>(*folder, manifest);
  } else {
    auto connected = Connect(flags);
    if (!connected.ok()) return Fail(connected.status());
    client = std::make_unique<client::Client>(*std::move(connected));
    SnapshotOptions snapshots;
    snapshots.run = flags.run;
    snapshots.state_bytes = model.state().size();
    snapshots.piece_bytes = sizes->piece;
    snapshots.resumed = flags.resume;
    snapshots.deadline = sizes->deadline;
    snapshots.on_moment = options.on_moment;
    auto begun = Snapshots::Begin(*client, snapshots);
    if (!begun.ok()) return Fail(begun.status());
    checkpoints = *std::move(begun);
  }

  const uint64_t first = model.step();
  TrainingReport report;
  if (absl::Status s = Train(model, checkpoints.get(), options, report); !s.ok()) {
    return Fail(absl::Status(s.code(), absl::StrCat(s.message(), " (training ended at step ", model.step(),
                                                    "; start it again with --resume)")));
  }
  Print(flags, model, first, report);
  return 0;
}

int RunSave(const Flags& flags) {
  if (absl::Status s = CheckName("--run", flags.run); !s.ok()) return Fail(s, 2);
  const auto idle = base::ParseDuration(flags.idle);
  if (!idle.ok()) return Fail(absl::InvalidArgumentError(absl::StrCat("--idle: ", idle.status().message())), 2);
  const OnMoment on_moment = ToDoAtMoments(flags.moments);
  auto folder = CheckpointFolder::Open(flags.folder, flags.run, on_moment);
  if (!folder.ok()) return Fail(folder.status());
  auto client = Connect(flags);
  if (!client.ok()) return Fail(client.status());
  SaverOptions options;
  options.run = flags.run;
  options.pieces_under_way = flags.pieces_under_way;
  options.idle = *idle;
  options.on_moment = on_moment;
  Saver saver(*client, **folder, options);
  if (absl::Status s = saver.Run(); !s.ok()) return Fail(s);
  std::cout << "saved " << saver.saved() << " checkpoints of run '" << flags.run << "', "
            << base::FormatSize(saver.bytes()) << "; the newest is of step " << (*folder)->newest()->step << std::endl;
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
  train->add_option("--state", flags.state, "size of weights and momentum together")->capture_default_str();
  train->add_option("--steps", flags.training.steps, "steps of the whole run")->capture_default_str();
  train->add_option("--every", flags.training.every, "steps between two checkpoints; 0: none at all")
      ->capture_default_str();
  train->add_option("--piece", flags.piece, "a snapshot is put in objects of this size")->capture_default_str();
  train->add_option("--folder", flags.folder, "where the checkpoints are, for --resume and --blocking");
  train->add_flag("--resume", flags.resume, "begin from the newest whole checkpoint, if there is one");
  train->add_flag("--blocking", flags.blocking, "write to --folder in the loop, without a store: to compare");
  train->add_option("--deadline", flags.deadline, "for taking the run over, and for the saver in the end")
      ->capture_default_str();
  AddMomentFlags(*train, flags.moments);

  CLI::App* const save = app.add_subcommand("save", "on another node: write a run's snapshots to disk, until the last");
  save->add_option("--socket", flags.socket, "the Unix socket of this node's tokd")->required();
  save->add_option("--run", flags.run, "the run's name, the same for both")->capture_default_str();
  save->add_option("--folder", flags.folder, "where the latest two checkpoints are kept")->required();
  save->add_option("--pieces-under-way", flags.pieces_under_way, "pieces that are pulled at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  save->add_option("--idle", flags.idle, "give up when no snapshot comes for this long")->capture_default_str();
  AddMomentFlags(*save, flags.moments);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return Fail(absl::InvalidArgumentError(absl::StrCat(error.what(), " (see checkpoint --help)")), 2);
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
