// The checkpoint of docs/applications.md: what is killed is resumed to the same bytes, what is torn
// is never taken, and nothing is left in the stores.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "examples/checkpoint/folder.h"
#include "examples/checkpoint/manifest.h"
#include "examples/checkpoint/model.h"
#include "tests/examples/applications_fixture.h"

namespace tokamak::example {
namespace {

namespace fs = std::filesystem;

class CheckpointTest : public ApplicationsTest {
 protected:
  static constexpr uint64_t kState = 2 << 20;  // in 8 pieces
  static constexpr uint64_t kSteps = 12;       // a snapshot after each third

  std::string FolderOf(const std::string& run) const { return folder_.long_path() + "/" + run; }

  std::unique_ptr<App> Train(const std::string& run, const Strings& more = {}, int node = 2) {
    Strings argv = {"examples/checkpoint/checkpoint",
                    "train",
                    "--run",
                    run,
                    "--state",
                    "2MiB",
                    "--piece",
                    "256KiB",
                    "--steps",
                    absl::StrCat(kSteps),
                    "--every",
                    "3",
                    "--folder",
                    FolderOf(run),
                    "--moments"};
    if (node != 0) argv.insert(argv.end(), {"--socket", nodes_[node]->socket()});
    argv.insert(argv.end(), more.begin(), more.end());
    return Run(argv);
  }
  std::unique_ptr<App> Save(const std::string& run, const Strings& more = {}, int node = 1) {
    Strings argv = {"examples/checkpoint/checkpoint", "save",     "--run",       run,        "--socket",
                    nodes_[node]->socket(),           "--folder", FolderOf(run), "--moments"};
    argv.insert(argv.end(), more.begin(), more.end());
    return Run(argv);
  }

  // The state that a run has which nobody disturbed.
  static uint64_t HashAfter(uint64_t steps) {
    Model model(kState);
    while (model.step() < steps) model.Step();
    return model.Hash();
  }

  // The trainer has ended well, with the right bytes, which are on disk as well.
  static void ExpectDone(App& trainer, const std::string& folder, const std::string& run) {
    static const uint64_t right = HashAfter(kSteps);
    trainer.ExpectCode(0);
    EXPECT_TRUE(absl::StrContains(trainer.text(), absl::StrFormat("xxh64 %016x", right))) << trainer.text();
    Model loaded(kState);
    Strings skipped;
    const auto newest = CheckpointFolder::LoadNewest(folder, run, loaded.StateToFill(), skipped);
    ASSERT_TRUE(newest.ok()) << newest.status();
    ASSERT_TRUE(newest->has_value());
    EXPECT_EQ((*newest)->step, kSteps);
    EXPECT_EQ(loaded.Hash(), right);
    EXPECT_TRUE(skipped.empty()) << absl::StrJoin(skipped, "\n");
    size_t files = 0;
    for (const auto& file : fs::directory_iterator(folder)) {
      EXPECT_FALSE(absl::EndsWith(file.path().string(), ".part")) << file.path();
      ++files;
    }
    EXPECT_LE(files, 2 * CheckpointFolder::kKept);
    EXPECT_EQ(files % 2, 0u);
  }
};

TEST_F(CheckpointTest, ARunIsSavedFromAnotherNodeAndLeavesNothingInTheStores) {
  StartNodes(2);
  const auto saver = Save("plain");
  const auto trainer = Train("plain");
  ExpectDone(*trainer, FolderOf("plain"), "plain");
  saver->ExpectCode(0);
  EXPECT_TRUE(absl::StrContains(saver->text(), "the newest is of step 12")) << saver->text();
  ExpectStoresAreEmpty();

  // Begun anew by mistake, over what was learned.
  const auto careless = Train("plain", {"--deadline", "2s"});
  Save("plain")->ExpectFailure(1, {"give it --resume"});
  careless->ExpectFailure(1, {"step 3 was not saved within 2", "checkpoint save --run plain"});
}

TEST_F(CheckpointTest, ATrainerThatIsKilledAtAnyMomentIsResumed) {
  StartNodes(2);
  const Strings moments = {"step 2",    "copied 3",  "sealed 3 3",  "head 3",  "step 5",   "saved 3",
                           "deleted 3", "copied 12", "sealed 12 0", "head 12", "saved 12", "deleted 12"};
  for (size_t i = 0; i < moments.size(); ++i) {
    SCOPED_TRACE(moments[i]);
    const std::string run = absl::StrCat("t", i);
    const auto saver = Save(run);
    Train(run, {"--kill-at", moments[i]})->ExpectKilled();
    const auto resumed = Train(run, {"--resume"});
    ExpectDone(*resumed, FolderOf(run), run);
    // Steps saved before it was killed are not computed again.
    if (i >= 5) {
      EXPECT_TRUE(absl::StrContains(resumed->text(), "resumed from step ")) << resumed->text();
    }
    saver->ExpectCode(0);
    ExpectStoresAreEmpty();
  }
}

TEST_F(CheckpointTest, ASaverThatIsKilledAtAnyMomentGoesOnWhenItIsStartedAgain) {
  StartNodes(2);
  const Strings moments = {"found 3", "piece 3 3",  "data 3",  "manifest 3",
                           "told 3",  "piece 12 7", "data 12", "manifest 12"};
  for (size_t i = 0; i < moments.size(); ++i) {
    SCOPED_TRACE(moments[i]);
    const std::string run = absl::StrCat("s", i);
    const auto killed = Save(run, {"--kill-at", moments[i]});
    const auto trainer = Train(run);
    killed->ExpectKilled();
    const auto saver = Save(run);
    ExpectDone(*trainer, FolderOf(run), run);
    saver->ExpectCode(0);
    ExpectStoresAreEmpty();
  }
}

TEST_F(CheckpointTest, TheTrainersDaemonIsKilled) {
  StartNodes(2);
  const auto sealing = Train("sealing", {"--stop-at", "sealed 3 3"});
  const auto first = Save("sealing");
  sealing->AwaitMoment("sealed 3 3");
  nodes_[2]->Kill();
  sealing->Continue();
  sealing->ExpectFailure(1, {"snapshot of step 3", "--resume"});
  Start(2);
  const auto again = Train("sealing", {"--resume"});
  ExpectDone(*again, FolderOf("sealing"), "sealing");
  first->ExpectCode(0);

  const auto saver = Save("pulling", {"--stop-at", "piece 3 0", "--pieces-under-way", "1"});
  const auto trainer = Train("pulling");
  saver->AwaitMoment("piece 3 0");
  nodes_[2]->Kill();
  saver->Continue();
  trainer->ExpectFailure(1, {"--resume"});
  Start(2);
  const auto resumed = Train("pulling", {"--resume"});
  ExpectDone(*resumed, FolderOf("pulling"), "pulling");
  saver->ExpectCode(0);
  ExpectStoresAreEmpty();
}

TEST_F(CheckpointTest, TheSaversDaemonIsKilledAndTheTrainerGoesOn) {
  StartNodes(3);
  const auto saver = Save("run", {"--stop-at", "piece 3 3"}, 3);
  const auto trainer = Train("run");
  saver->AwaitMoment("piece 3 3");
  nodes_[3]->Kill();
  saver->Continue();
  saver->ExpectFailure(1, {"checkpoint: "});
  trainer->AwaitMoment(absl::StrCat("step ", kSteps));
  Start(3);
  const auto again = Save("run", {}, 3);
  ExpectDone(*trainer, FolderOf("run"), "run");
  again->ExpectCode(0);
  ExpectStoresAreEmpty();
}

TEST_F(CheckpointTest, ATrainerHearsThatAnotherHasItsRun) {
  StartNodes(2);
  const auto saver = Save("run");
  const auto older = Train("run", {"--stop-at", "step 2"});
  older->AwaitMoment("step 2");
  const auto newer = Train("run", {"--resume"});
  ExpectDone(*newer, FolderOf("run"), "run");
  saver->ExpectCode(0);
  older->Continue();
  older->ExpectFailure(1, {"another trainer has taken over run 'run'"});
  ExpectStoresAreEmpty();
}

TEST_F(CheckpointTest, ABlockingSaveIsResumedToo) {
  for (const char* moment : {"data 6", "manifest 6", "step 7"}) {
    SCOPED_TRACE(moment);
    const std::string run = std::string("b") + moment[0];
    Train(run, {"--blocking", "--kill-at", moment}, 0)->ExpectKilled();
    const auto resumed = Train(run, {"--blocking", "--resume"}, 0);
    ExpectDone(*resumed, FolderOf(run), run);
    EXPECT_TRUE(
        absl::StrContains(resumed->text(), moment[0] == 'd' ? "resumed from step 3\n" : "resumed from step 6\n"))
        << resumed->text();
  }
}

TEST_F(CheckpointTest, MistakesAreReportedInOneLine) {
  const std::string program = "examples/checkpoint/checkpoint";
  Run({program, "train", "--every", "0", "--state", "1KiB"})->ExpectFailure(2, {"--state: from 8 KiB"});
  Run({program, "train", "--socket", "x", "--piece", "1B"})->ExpectFailure(2, {"--piece: ", "make them larger"});
  Run({program, "train", "--resume"})->ExpectFailure(2, {"--folder"});
  Run({program, "train"})->ExpectFailure(2, {"--socket"});
  Run({program, "train", "--every", "0", "--run", "a/b"})->ExpectFailure(2, {"--run: "});
  Run({program, "save", "--socket", folder_.Path("none"), "--folder", FolderOf("x")})->ExpectFailure(1, {"none"});
  Run({program, "steal"})->ExpectFailure(2, {"--help"});
  const auto kv = [](const Strings& more) {
    Strings argv = {"examples/kv_cache/kv_cache"};
    argv.insert(argv.end(), more.begin(), more.end());
    return argv;
  };
  Run(kv({"decode", "--socket", "x", "--width", "6"}))->ExpectFailure(2, {"width: a multiple of 4"});
  Run(kv({"prefill", "--socket", "x", "--deadline", "soon"}))->ExpectFailure(2, {"--deadline: "});
  Run(kv({"prefill"}))->ExpectFailure(2, {"--socket"});
}

// ---- what is on disk

class CheckpointFolderTest : public testing::Test {
 protected:
  static constexpr uint64_t kBytes = 1000, kPiece = 300;

  static std::vector<uint8_t> StateOf(uint64_t step) { return daemon::Pattern(kBytes, static_cast<uint8_t>(step)); }

  void Write(uint64_t step) {
    auto folder = CheckpointFolder::Open(path_, "run", nullptr);
    ASSERT_TRUE(folder.ok()) << folder.status();
    auto writer = (*folder)->Begin(kBytes, kPiece);
    ASSERT_TRUE(writer.ok()) << writer.status();
    Manifest manifest;
    manifest.run = "run";
    manifest.step = step;
    manifest.bytes = kBytes;
    manifest.piece_bytes = kPiece;
    const std::vector<uint8_t> state = StateOf(step);
    for (uint64_t piece = 0; piece < 4; ++piece) {
      const uint64_t begin = piece * kPiece;
      const auto bytes = Span<const uint8_t>(state).subspan(begin, std::min(kPiece, kBytes - begin));
      manifest.hashes.push_back(HashOfPiece(bytes));
      ASSERT_TRUE(writer->Write(piece, bytes).ok());
    }
    ASSERT_TRUE(writer->Commit(manifest).ok());
  }

  Result<std::optional<Manifest>> Load() {
    skipped_.clear();
    state_.assign(kBytes, 0);
    return CheckpointFolder::LoadNewest(path_, "run", state_, skipped_);
  }
  void ExpectLoads(uint64_t step, size_t skipped) {
    const auto loaded = Load();
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    ASSERT_TRUE(loaded->has_value());
    EXPECT_EQ((*loaded)->step, step);
    EXPECT_TRUE(state_ == StateOf(step));
    EXPECT_EQ(skipped_.size(), skipped);
  }
  Strings Files() const {
    Strings files;
    for (const auto& file : fs::directory_iterator(path_)) files.push_back(file.path().filename().string());
    std::sort(files.begin(), files.end());
    return files;
  }
  void Overwrite(const std::string& file, const std::string& text) { std::ofstream(path_ + "/" + file) << text; }

  const daemon::ShortFolder folder_;
  const std::string path_ = folder_.Path("checkpoints");
  std::vector<uint8_t> state_;
  Strings skipped_;
};

TEST_F(CheckpointFolderTest, KeepsTheLatestTwo) {
  const auto none = Load();
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_FALSE(none->has_value());
  for (uint64_t step = 1; step <= 4; ++step) {
    Write(step);
    ExpectLoads(step, 0);
  }
  EXPECT_EQ(Files(), (Strings{"000003.data", "000003.json", "000004.data", "000004.json"}));
}

TEST_F(CheckpointFolderTest, ATornOrChangedFileIsNeverTaken) {
  const std::vector<std::pair<std::string, std::function<void()>>> harms = {
      {"shorter", [&] { fs::resize_file(path_ + "/000002.data", kBytes - 1); }},
      {"longer", [&] { fs::resize_file(path_ + "/000002.data", kBytes + 1); }},
      {"empty", [&] { Overwrite("000002.data", ""); }},
      {"gone", [&] { fs::remove(path_ + "/000002.data"); }},
      {"one byte",
       [&] {
         std::fstream file(path_ + "/000002.data", std::ios::in | std::ios::out | std::ios::binary);
         file.seekp(777);
         file.put(static_cast<char>(StateOf(2)[777] ^ 1));
       }},
      {"no JSON", [&] { Overwrite("000002.json", "{\"run\":\"run\""); }},
      {"no manifest", [&] { Overwrite("000002.json", "{}"); }},
      {"no such bytes", [&] { Overwrite("000002.json", std::string(Manifest::kMaxBytes + 1, ' ')); }},
  };
  for (const auto& [name, harm] : harms) {
    SCOPED_TRACE(name);
    fs::remove_all(path_);
    Write(1);
    Write(2);
    ExpectLoads(2, 0);
    harm();
    ExpectLoads(1, 1);
    Write(3);  // whoever writes again goes on behind it
    ExpectLoads(3, 0);
  }
  fs::resize_file(path_ + "/000003.data", 1);
  fs::resize_file(path_ + "/000001.data", 1);
  EXPECT_EQ(Load().status().code(), StatusCode::kDataLoss) << Load().status();
}

TEST_F(CheckpointFolderTest, PartialFilesAreRemovedAndForeignOnesStay) {
  Write(1);
  Overwrite("000002.data.part", "half");
  Overwrite("000002.json.part", "half");
  Overwrite("000003.data", "no manifest");
  Overwrite("notes.txt", "mine");
  ExpectLoads(1, 0);
  {
    auto folder = CheckpointFolder::Open(path_, "run", nullptr);
    ASSERT_TRUE(folder.ok()) << folder.status();
    EXPECT_EQ(Files(), (Strings{"000001.data", "000001.json", "notes.txt"}));
    auto dropped = (*folder)->Begin(kBytes, kPiece);
    ASSERT_TRUE(dropped.ok());
    EXPECT_FALSE(dropped->Write(3, StateOf(1)).ok()) << "longer than its piece";
    EXPECT_FALSE(dropped->Write(4, {}).ok()) << "beyond the last";
    EXPECT_EQ(CheckpointFolder::Open(path_, "run", nullptr).status().code(), StatusCode::kFailedPrecondition)
        << "two writers";
  }
  EXPECT_EQ(Files(), (Strings{"000001.data", "000001.json", "notes.txt"}));
  EXPECT_EQ(CheckpointFolder::Open(path_, "other", nullptr).status().code(), StatusCode::kFailedPrecondition);
  std::vector<uint8_t> smaller(kBytes - 1);
  EXPECT_EQ(CheckpointFolder::LoadNewest(path_, "run", smaller, skipped_).status().code(),
            StatusCode::kFailedPrecondition);
}

TEST(ManifestTest, AManifestComesBackUnchangedAndIsChecked) {
  Manifest manifest;
  manifest.run = "run";
  manifest.life = 0xfedcba9876543210;
  manifest.number = 3;
  manifest.step = 40;
  manifest.resumed = manifest.final = true;
  manifest.bytes = 10;
  manifest.piece_bytes = 4;
  manifest.hashes = {1, ~uint64_t{0}, 3};
  const std::string text = manifest.ToJson();
  const auto same = Manifest::Parse(text, "it");
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(same->ToJson(), text);
  EXPECT_EQ(same->PieceSize(2), 2u);
  const std::pair<const char*, const char*> changes[] = {{"\"bytes\":10", "\"bytes\":-10"},
                                                         {"\"bytes\":10", "\"bytes\":100"},
                                                         {"\"bytes\":10", "\"bytes\":0"},
                                                         {"\"step\":40", "\"step\":\"40\""},
                                                         {"\"final\":true", "\"final\":1"},
                                                         {"\"run\":\"run\"", "\"run\":\"../run\""},
                                                         {"fedcba9876543210", "fedcba987654"},
                                                         {"ffffffffffffffff", "fffffffffffffffg"},
                                                         {"\"piece_bytes\":4", "\"piece_bytes\":0"},
                                                         {"{", "["}};
  for (const auto& [from, to] : changes) {
    std::string changed = text;
    const size_t at = changed.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    changed.replace(at, std::string(from).size(), to);
    EXPECT_EQ(Manifest::Parse(changed, "it").status().code(), StatusCode::kInvalidArgument) << changed;
  }
}

}  // namespace
}  // namespace tokamak::example
