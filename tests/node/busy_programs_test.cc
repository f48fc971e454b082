// A node whose programs ask for as much as they may: it keeps its lease, its announcements go out,
// and other programs have their answers.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/node/node_fixture.h"

namespace tokamak::node {
namespace {

using base::Milliseconds;
using base::Seconds;

// A program that keeps Deletes under way, as many as a connection may have.
class DeletingProgram final {
 public:
  static constexpr size_t kUnderWay = 4000;

  DeletingProgram(sim::Host& host, const std::string& name) : host_(host), name_(name), me_(host.store().NewOwner()) {
    Refill();
  }
  ~DeletingProgram() {
    timer_.Cancel();
    asked_.clear();
    host_.store().DropOwner(me_);
  }

  size_t answered() const { return answered_; }
  const std::vector<absl::Status>& surprises() const { return surprises_; }

 private:
  void Refill() {
    for (const uint64_t number : over_) asked_.erase(number);
    over_.clear();
    while (asked_.size() < kUnderWay) {
      const uint64_t number = ++last_;
      asked_[number] = host_.node().Delete(base::ObjectId::FromName(absl::StrCat(name_, number)), me_,
                                           [this, number](const absl::StatusOr<uint32_t>& copies) {
                                             ++answered_;
                                             over_.push_back(number);
                                             if (!absl::IsNotFound(copies.status()))
                                               surprises_.push_back(copies.status());
                                           });
    }
    timer_ = host_.loop.RunAfter(Milliseconds(50), [this] { Refill(); });
  }

  sim::Host& host_;
  const std::string name_;
  const store::Owner me_;
  uint64_t last_ = 0;
  size_t answered_ = 0;
  std::vector<absl::Status> surprises_;
  std::map<uint64_t, base::Pending> asked_;
  std::vector<uint64_t> over_;
  base::Timer timer_;
};

class BusyProgramsTest : public NodeTest {
 protected:
  // The directory is on node 0, and an answer of it takes 20 ms.
  void BuildFarAway(size_t hosts) {
    sim::ClusterOptions options;
    options.link.latency = Milliseconds(10);
    options.membership.lease = Seconds(1);
    options.membership.renew = Milliseconds(200);
    options.membership.directory_deadline = Milliseconds(300);
    Build(hosts, {}, options);
    cluster_->RunFor(options.directory_recovery);  // until then no object is reported missing
  }
  // When the answer came.
  base::Duration DeleteTakes(size_t node, const std::string& name) {
    const store::Owner me = at(node).store().NewOwner();
    const base::Time asked = cluster_->time.Now();
    bool done = false;
    const base::Pending call = at(node).node().Delete(Id(name), me, [&](const absl::StatusOr<uint32_t>& copies) {
      done = true;
      EXPECT_TRUE(absl::IsNotFound(copies.status())) << copies.status();
    });
    EXPECT_TRUE(cluster_->RunUntil([&] { return done; }));
    at(node).store().DropOwner(me);
    return cluster_->time.Now() - asked;
  }
};

TEST_F(BusyProgramsTest, BusyProgramsDoNotCostTheLeaseWhateverTheyDelete) {
  BuildFarAway(2);
  const MembershipCounters before = at(1).node().membership().counters();
  {
    DeletingProgram hog(at(1), "none");
    for (int i = 0; i < 20; ++i) {
      cluster_->RunFor(Milliseconds(50));
      ASSERT_FALSE(at(1).node().membership().directory_away()) << "after " << i << " steps";
    }
    EXPECT_GT(hog.answered(), 1000u);
    EXPECT_TRUE(hog.surprises().empty()) << hog.surprises().size() << ": " << hog.surprises().front();
  }
  const MembershipCounters& after = at(1).node().membership().counters();
  EXPECT_GE(after.renewals, before.renewals + 3);
  EXPECT_EQ(after.failed_renewals, before.failed_renewals);
  EXPECT_EQ(after.re_announcements, before.re_announcements);
}

TEST_F(BusyProgramsTest, PutsAreAnnouncedAsFastAsEver) {
  BuildFarAway(2);
  DeletingProgram hog(at(1), "none");
  cluster_->RunFor(Milliseconds(200));
  for (int i = 0; i < 3; ++i) {
    const std::string name = absl::StrCat("x", i);
    ASSERT_EQ(at(1).Put(name, 100), absl::OkStatus());
    absl::Status confirmed = absl::InternalError("no answer");
    const base::Pending call = at(1).node().Confirm({Id(name), GenerationOn(1, name)},
                                                    [&](const absl::Status& status) { confirmed = status; });
    cluster_->RunFor(Milliseconds(100));
    EXPECT_TRUE(confirmed.ok()) << confirmed;
  }
}

TEST_F(BusyProgramsTest, OneProgramsDeletesDoNotHoldUpAnothers) {
  BuildFarAway(2);
  DeletingProgram hog(at(1), "none");
  for (int i = 0; i < 3; ++i) {
    cluster_->RunFor(Milliseconds(70));
    EXPECT_LT(DeleteTakes(1, "nothing"), Milliseconds(100));
  }
}

TEST_F(BusyProgramsTest, TheMaximumOfHogsLeavesATurnForTheNext) {
  BuildFarAway(2);
  std::vector<std::unique_ptr<DeletingProgram>> hogs;
  for (int i = 0; i < 4; ++i) hogs.push_back(std::make_unique<DeletingProgram>(at(1), absl::StrCat("hog", i, ".")));
  cluster_->RunFor(Milliseconds(300));
  EXPECT_LT(DeleteTakes(1, "nothing"), Milliseconds(100));
  std::vector<size_t> before;
  for (const auto& hog : hogs) before.push_back(hog->answered());
  cluster_->RunFor(Milliseconds(300));
  for (size_t i = 0; i < hogs.size(); ++i) EXPECT_GT(hogs[i]->answered(), before[i] + 100) << i;
}

}  // namespace
}  // namespace tokamak::node
