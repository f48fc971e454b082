#include "sim/costs/presets.h"

#include <fstream>
#include <string>

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"

namespace tokamak::sim {
namespace {

TEST(PresetsTest, TheShippedPresetsAreRead) {
  const Presets& presets = ShippedPresets();
  ASSERT_EQ(presets.size(), 3u);
  EXPECT_TRUE(presets.at("zero").post == base::Duration());
  EXPECT_EQ(presets.at("zero").copy_bandwidth, 0u);
  EXPECT_TRUE(presets.at("cx6-200g").registration == base::Microseconds(16));
  EXPECT_EQ(presets.at("cx6-200g").copy_bandwidth, uint64_t{7000} << 20);
  EXPECT_TRUE(presets.at("softroce").registration_page == base::Nanoseconds(150));
}

constexpr char kMine[] = R"({"mine": {
  "about": "a host of mine",
  "post": {"time": "100ns", "source": "perf"},
  "completion": {"time": "30ns", "source": "perf"},
  "registration": {"time": "9us", "source": "perf"},
  "registration_page": {"time": "200ns", "source": "perf"},
  "deregistration": {"time": "3us", "source": "perf"},
  "deregistration_page": {"time": "50ns", "source": "perf"},
  "copy": {"bandwidth": "12GB/s", "source": "perf"},
  "client_round_trip": {"time": "8us", "source": "perf"}
}})";

TEST(PresetsTest, AFileOfOnesOwnIsRead) {
  const auto presets = ParsePresets(kMine);
  ASSERT_TRUE(presets.ok()) << presets.status();
  const HostCosts& mine = presets->at("mine");
  EXPECT_TRUE(mine.post == base::Nanoseconds(100));
  EXPECT_TRUE(mine.completion == base::Nanoseconds(30));
  EXPECT_TRUE(mine.registration == base::Microseconds(9));
  EXPECT_TRUE(mine.registration_page == base::Nanoseconds(200));
  EXPECT_TRUE(mine.deregistration == base::Microseconds(3));
  EXPECT_TRUE(mine.deregistration_page == base::Nanoseconds(50));
  EXPECT_EQ(mine.copy_bandwidth, 12'000'000'000u);
  EXPECT_TRUE(mine.client_round_trip == base::Microseconds(8));
}

std::string ErrorOf(const std::string& from, const std::string& to) {
  const std::string text = absl::StrReplaceAll(kMine, {{from, to}});
  EXPECT_NE(text, kMine);
  return std::string(ParsePresets(text).status().message());
}

TEST(PresetsTest, AFigureNeedsASource) {
  EXPECT_EQ(ErrorOf(R"("9us", "source": "perf")", R"("9us")"),
            "mine.registration.source: say where the figure is from, or \"estimate\"");
}

TEST(PresetsTest, MissingUnknownAndMalformedKeysAreReportedWithTheirPlace) {
  EXPECT_EQ(ErrorOf(R"("registration": {"time": "9us", "source": "perf"},)", ""),
            "mine.registration: this figure is missing; give its time and source");
  EXPECT_EQ(ErrorOf("\"post\"", "\"posts\""), "mine.post: this figure is missing; give its time and source");
  EXPECT_EQ(ErrorOf("a host of mine\"", "a host of mine\", \"cores\": 3"),
            "mine: unknown key 'cores'; known are about, client_round_trip, completion, copy, deregistration, "
            "deregistration_page, post, registration, registration_page");
  EXPECT_EQ(ErrorOf("12GB/s", "12GB"),
            "mine.copy: a bandwidth of at least 1MB/s, such as \"12GB/s\", or \"unlimited\" is needed");
  EXPECT_EQ(ErrorOf("12GB/s", "0GB/s"),
            "mine.copy: a bandwidth of at least 1MB/s, such as \"12GB/s\", or \"unlimited\" is needed");
  EXPECT_NE(ErrorOf("100ns", "soon").find("mine.post: "), std::string::npos);
  EXPECT_NE(ErrorOf("{\"mine\": {", "[{").find("JSON"), std::string::npos);
}

class FindPresetTest : public testing::Test {
 protected:
  FindPresetTest() {
    std::ofstream(folder_ + "/mine.json") << kMine;
    std::ofstream(folder_ + "/two.json") << absl::StrReplaceAll(kMine, {{"}}", "},"}})
                                         << absl::StrReplaceAll(kMine, {{"{\"mine\"", "\"old\""}, {"100ns", "200ns"}});
    std::ofstream(folder_ + "/bad.json") << absl::StrReplaceAll(kMine, {{"100ns", "soon"}});
  }
  base::Duration PostOf(const std::string& name) const { return FindPreset(name, folder_).value().post; }
  std::string ErrorOfName(const std::string& name) const {
    return std::string(FindPreset(name, folder_).status().message());
  }

  const std::string folder_ = testing::TempDir();
};

TEST_F(FindPresetTest, APresetIsFoundByNameOrFile) {
  EXPECT_TRUE(PostOf("cx6-200g") == base::Nanoseconds(75));
  EXPECT_TRUE(PostOf("mine.json") == base::Nanoseconds(100));
  EXPECT_TRUE(PostOf("two.json:mine") == base::Nanoseconds(100));
  EXPECT_TRUE(PostOf("two.json:old") == base::Nanoseconds(200));
  EXPECT_TRUE(PostOf(folder_ + "/mine.json") == base::Nanoseconds(100));
}

TEST_F(FindPresetTest, AnUnknownPresetIsReportedWithTheKnownOnes) {
  EXPECT_EQ(ErrorOfName("cx7"),
            "there are no costs 'cx7'; there are cx6-200g, softroce, zero, or the name of a file, as in mine.json");
  EXPECT_EQ(ErrorOfName("two.json"), "name one of those in two.json, as in two.json:NAME; there are mine, old");
  EXPECT_EQ(ErrorOfName("two.json:new"), "name one of those in two.json, as in two.json:NAME; there are mine, old");
  EXPECT_NE(ErrorOfName("none.json").find("cannot read"), std::string::npos);
  EXPECT_NE(ErrorOfName("bad.json").find("/bad.json: mine.post: "), std::string::npos);
}

}  // namespace
}  // namespace tokamak::sim
