// The directory that a daemon's options ask for.
#include "lib/daemon/directory_host.h"

#include <memory>
#include <optional>
#include <utility>

#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/node/engines/threaded_engine.h"

namespace tokamak::daemon {
namespace {

constexpr base::Duration kPatience = base::Seconds(5);

class DirectoryHostTest : public testing::Test {
 protected:
  void Serve(base::Duration lease) {
    auto host = OpenDirectory(loop_, engine_, DirectoryChoice(), lease, base::Random(1));
    ASSERT_TRUE(host.ok()) << host.status();
    host_ = *std::move(host);
  }
  // A node that was in a directory before this one, and has or has not announced all that it holds.
  absl::Status Return(bool complete = false) {
    directory::JoinRequest request;
    request.node.id = "a";
    request.node.engines = {"10.0.0.1:7000"};
    request.lease = request.grace = base::Seconds(60);
    request.returning = true;
    request.complete = complete;
    return Answer([&](auto done) {
      return host_->directory().Join(request, kPatience, [done](const auto& joined) { done(joined.status()); });
    });
  }
  absl::Status Delete() {
    directory::DeleteRequest request;
    request.id = base::ObjectId::FromName("x");
    return Answer([&](auto done) {
      return host_->directory().Delete(request, kPatience, [done](const auto& deleted) { done(deleted.status()); });
    });
  }

  os::EpollLoop loop_;

  node::ThreadedEngine engine_{loop_};
  std::unique_ptr<node::DirectoryHost> host_;

 private:
  template <typename Ask>
  absl::Status Answer(Ask ask) {
    std::optional<absl::Status> answer;
    const base::Pending call = ask([&](const absl::Status& status) { answer = status; });
    loop_.RunUntil([&] { return answer.has_value(); }, loop_.Now() + kPatience);
    return answer.value_or(absl::InternalError("no answer"));
  }
};

TEST_F(DirectoryHostTest, ARestartedDirectoryLearnsForALease) {
  Serve(base::Milliseconds(100));
  ASSERT_EQ(Return(), absl::OkStatus());
  absl::Status deleted = Delete();
  EXPECT_TRUE(absl::IsUnavailable(deleted)) << deleted;
  ASSERT_EQ(Return(/*complete=*/true), absl::OkStatus());
  const base::Time returned = loop_.Now();
  while (absl::IsUnavailable(deleted) && loop_.Now() < returned + kPatience) deleted = Delete();
  EXPECT_TRUE(absl::IsNotFound(deleted)) << deleted;
}

// A directory on a node that is known by its host's name.
class ResolvedDirectoryTest : public DirectoryHostTest {
 protected:
  std::string TroubleOf(const std::string& host) {
    DirectoryChoice choice;
    choice.kind = DirectoryChoice::Kind::kRemote;
    choice.server = {host, 7000};
    host_ = *OpenDirectory(loop_, engine_, choice, kPatience, base::Random(1));
    // The link has no engine, so nobody answers; but where is it asked?
    std::string said;
    const base::Time limit = loop_.Now() + kPatience * 6;
    while (loop_.Now() < limit && said.find("not known yet") == std::string::npos) said = Delete().ToString();
    EXPECT_NE(said.find("not known yet"), std::string::npos) << said;
    return said;
  }
};

TEST_F(ResolvedDirectoryTest, CallsReportANameThatIsUnknownYet) {
  EXPECT_NE(TroubleOf("no-such-host.invalid").find("its host's name is being looked up"), std::string::npos);
}

}  // namespace
}  // namespace tokamak::daemon
