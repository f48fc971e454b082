#include "lib/verbs/kernel/event_pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cstdint>

#include "gtest/gtest.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::verbs::kernel {
namespace {

class EventPipeTest : public ::testing::Test {
 protected:
  EventPipeTest() : pipe_(EventPipe::Make(sizeof(uint64_t))), end_(pipe_->TakeReadEnd()) {}

  void Write(uint64_t subject) { pipe_->Write(&subject); }
  bool Readable() {
    pollfd one{end_.get(), POLLIN, 0};
    return poll(&one, 1, 0) > 0;
  }
  uint64_t Read() {
    uint64_t subject = 0;
    EXPECT_EQ(read(end_.get(), &subject, sizeof(subject)), static_cast<ssize_t>(sizeof(subject)));
    return subject;
  }

  std::unique_ptr<EventPipe> pipe_;
  os::FileDescriptor end_;
};

TEST_F(EventPipeTest, EventsAreReadInTheirOrder) {
  Write(1);
  Write(2);
  EXPECT_EQ(Read(), 1u);
  EXPECT_EQ(Read(), 2u);
  EXPECT_FALSE(Readable());
}

TEST_F(EventPipeTest, RetiredEventsAreNotReadAndReadOnesAreCounted) {
  for (const uint64_t subject : {1, 2, 1, 3, 1}) Write(subject);
  EXPECT_EQ(Read(), 1u);
  EXPECT_EQ(pipe_->Retire(1), 1u);
  EXPECT_EQ(Read(), 2u);
  EXPECT_EQ(Read(), 3u);
  EXPECT_FALSE(Readable());
  EXPECT_EQ(pipe_->Retire(1), 0u);
}

TEST_F(EventPipeTest, EventsBeyondAFullPipeFollow) {
  constexpr uint64_t kMany = 20000;
  for (uint64_t i = 0; i < kMany; ++i) Write(i);
  for (uint64_t i = 0; i < kMany; ++i) {
    ASSERT_EQ(Read(), i);
    if (i % 1000 == 0) pipe_->Flush();
  }
}

TEST_F(EventPipeTest, TheProgramsEndBlocksUnlessItSaysOtherwise) {
  EXPECT_EQ(fcntl(end_.get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(fcntl(end_.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(EventPipeTest, AProgramThatClosedItsEndDisturbsNobody) {
  end_.Close();
  Write(1);
  EXPECT_EQ(pipe_->Retire(1), 0u);
}

}  // namespace
}  // namespace tokamak::verbs::kernel
