// The directory that a daemon's options ask for.
#include "lib/daemon/directory_host.h"

#include <memory>
#include <utility>

#include "absl/types/optional.h"
#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/node/engine_link.h"

namespace tokamak::daemon {
namespace {

constexpr base::Duration kPatience = base::Seconds(5);

class DirectoryHostTest : public testing::Test {
 protected:
  void Serve(base::Duration lease) {
    auto host = OpenDirectory(loop_, link_, DirectoryChoice(), lease, base::Random(1));
    ASSERT_TRUE(host.ok()) << host.status();
    host_ = *std::move(host);
  }
  // A node that was in a directory before this one, and has not announced all that it holds.
  absl::Status Return() {
    directory::JoinRequest request;
    request.node.id = "a";
    request.node.engines = {"10.0.0.1:7000"};
    request.lease = request.grace = base::Seconds(60);
    request.returning = true;
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

 private:
  template <typename Ask>
  absl::Status Answer(Ask ask) {
    absl::optional<absl::Status> answer;
    const base::Pending call = ask([&](const absl::Status& status) { answer = status; });
    loop_.RunUntil([&] { return answer.has_value(); }, loop_.Now() + kPatience);
    return answer.value_or(absl::InternalError("no answer"));
  }

  node::EngineLink link_{loop_};
  std::unique_ptr<node::DirectoryHost> host_;
};

TEST_F(DirectoryHostTest, ADirectoryThatWasRestartedLearnsForALease) {
  Serve(base::Milliseconds(100));
  ASSERT_EQ(Return(), absl::OkStatus());
  const base::Time returned = loop_.Now();
  absl::Status deleted = Delete();
  EXPECT_TRUE(absl::IsUnavailable(deleted)) << deleted;
  while (absl::IsUnavailable(deleted) && loop_.Now() < returned + kPatience) deleted = Delete();
  EXPECT_TRUE(absl::IsNotFound(deleted)) << deleted;
}

}  // namespace
}  // namespace tokamak::daemon
