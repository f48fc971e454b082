#include "tests/bench/cluster/report.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace tokamak::bench {
namespace {

const std::vector<Contender> kReportedContenders = {{"read", "arena"}, {"socket", "tuned"}};

// Ranks 1 and 2 get 1,000 bytes each; rank 2 takes twice as long.
CaseResult Make(Pattern pattern, uint64_t size, size_t contender, int count = 3) {
  std::vector<Repetition> repetitions;
  for (int seconds = 1; seconds <= count; ++seconds) {
    repetitions.push_back({{0, seconds / 2.0, seconds * 1.0}, {1, seconds / 8.0, 0.75}});
  }
  return CaseResult::Of({pattern, size, contender}, 3, repetitions, Stop::kTime);
}

Report MakeReport() {
  return Report({3, 1, "a \"fast\" machine, 24 GiB", "Linux 6", "mpirun -np 3 cluster --sizes 1,2"},
                kReportedContenders,
                {Make(Pattern::kAllToAll, 1, 0, /*count=*/6), Make(Pattern::kOneToMany, 1000, 1),
                 Make(Pattern::kOneToMany, 1000, 0), Make(Pattern::kOneToMany, 64, 0)});
}

TEST(CaseResultTest, SharesCountTheRanksThatGet) {
  const CaseResult result = Make(Pattern::kOneToMany, 1000, 0);
  EXPECT_EQ(result.repetitions, 3u);
  EXPECT_DOUBLE_EQ(result.p10, 1.2);
  EXPECT_DOUBLE_EQ(result.p50, 2);
  EXPECT_DOUBLE_EQ(result.p90, 2.8);
  EXPECT_FALSE(result.interval.has_value()) << "too few";
  EXPECT_EQ(result.bytes, 2000u);
  EXPECT_DOUBLE_EQ(result.bytes_per_second, 1000);
  EXPECT_DOUBLE_EQ(result.least_share, 500);
  EXPECT_DOUBLE_EQ(result.mean_share, 750);
  EXPECT_DOUBLE_EQ(result.least_source, 0.25) << "the median of the rank where it is least";
}

TEST(ReportTest, CsvHasARowForEachResultInOrder) {
  const std::vector<std::string> lines = absl::StrSplit(MakeReport().Csv(), "\r\n", absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0],
            "pattern,size_bytes,protocol,variant,ranks,repetitions,ended_by,p10_seconds,p50_seconds,p90_seconds,"
            "interval_low_seconds,interval_high_seconds,bytes,bytes_per_second,least_rank_bytes_per_second,"
            "mean_rank_bytes_per_second,least_source_share,machine,kernel,command");
  const std::string run = ",\"a \"\"fast\"\" machine, 24 GiB\",\"Linux 6\",\"mpirun -np 3 cluster --sizes 1,2\"";
  EXPECT_EQ(lines[1].substr(0, lines[1].find(",1.")), "one-to-many,64,read,arena,3,3,time");
  EXPECT_EQ(lines[2], "one-to-many,1000,read,arena,3,3,time,1.2,2,2.7999999999999998,,,2000,1000,500,750,0.25" + run);
  EXPECT_EQ(lines[3].substr(0, 29), "one-to-many,1000,socket,tuned");
  EXPECT_EQ(lines[4].substr(0, 36), "all-to-all,1,read,arena,3,6,time,1.5") << "and an interval, of six";
  EXPECT_NE(lines[4].find(",3.5,5.5,1,6,"), std::string::npos) << lines[4];
}

TEST(ReportTest, JsonHoldsTheSameValues) {
  Settings settings;
  settings.seed = 42;
  const auto json = nlohmann::json::parse(MakeReport().Json(settings));
  EXPECT_EQ(json["run"]["machine"], "a \"fast\" machine, 24 GiB");
  EXPECT_EQ(json["settings"]["seed"], 42);
  ASSERT_EQ(json["results"].size(), 4u);
  EXPECT_EQ(json["results"][1]["protocol"], "read");
  EXPECT_EQ(json["results"][1]["p50_seconds"], 2.0);
  EXPECT_TRUE(json["results"][1]["interval_seconds"].is_null());
  EXPECT_EQ(json["results"][1]["least_source_share"], 0.25);
  EXPECT_EQ(json["results"][3]["interval_seconds"], (std::vector<double>{1, 6}));
}

TEST(ReportTest, TheTableIsForPeople) {
  const std::string table = MakeReport().Table();
  for (const char* part :
       {"3 ranks on 1 host", "Linux 6", "one-to-many", "2.00 s", "1000 B/s", "unknown", "71.4 %", "tuned"}) {
    EXPECT_NE(table.find(part), std::string::npos) << part << " in\n" << table;
  }
}

}  // namespace
}  // namespace tokamak::bench
