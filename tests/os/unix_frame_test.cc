#include "lib/os/sockets/unix_frame.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "lib/base/bytes.h"
#include "lib/base/random.h"
#include "lib/os/sockets/passed_descriptors.h"

namespace tokamak::os {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes Numbered(size_t size) {
  Bytes bytes(size);
  std::iota(bytes.begin(), bytes.end(), uint8_t{1});
  return bytes;
}

int OpenDescriptors() {
  int count = 0;
  for (int fd = 0; fd < 1024; ++fd) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

bool SameFile(int a, int b) {
  struct stat first, second;
  return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_ino == second.st_ino;
}

class UnixFrameTest : public testing::Test {
 protected:
  UnixFrameTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    here_ = FileDescriptor(ends[0]);
    there_ = FileDescriptor(ends[1]);
  }

  // Raw bytes, with descriptors where there are any.
  void SendRaw(const Bytes& bytes, const std::vector<int>& descriptors = {}) {
    iovec piece = {const_cast<uint8_t*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(16 * sizeof(int))] = {};
    if (!descriptors.empty()) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
      std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
    }
    ASSERT_EQ(sendmsg(here_.get(), &message, MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }

  static Bytes Header(uint32_t length, uint32_t descriptors) {
    Bytes bytes(4);
    base::StoreLittle<uint32_t>(bytes.data(), length | descriptors << 24);
    return bytes;
  }

  // All frames that can be had without waiting.
  std::vector<Frame> ReadFrames() {
    std::vector<Frame> frames;
    for (;;) {
      const absl::StatusOr<bool> read = assembler_.ReadSome(there_.get());
      status_ = read.status();
      Frame frame;
      while (assembler_.Next(&frame)) frames.push_back(std::move(frame));
      if (!read.ok() || !*read) return frames;
    }
  }

  FileDescriptor here_, there_;
  FrameQueue queue_;
  FrameAssembler assembler_;
  absl::Status status_;
};

TEST_F(UnixFrameTest, AFrameIsItsLengthAndItsBody) {
  ASSERT_TRUE(queue_.Add({{'a', 'b', 'c'}}, {}).ok());
  EXPECT_EQ(queue_.bytes(), 7u);
  EXPECT_TRUE(*queue_.Flush(here_.get()));
  uint8_t raw[16];
  ASSERT_EQ(read(there_.get(), raw, sizeof(raw)), 7);
  EXPECT_EQ(Bytes(raw, raw + 7), (Bytes{3, 0, 0, 0, 'a', 'b', 'c'}));
}

TEST_F(UnixFrameTest, FramesArriveWholeAndInOrder) {
  for (size_t size = 0; size < 100; ++size) ASSERT_TRUE(queue_.Add(Numbered(size), {}).ok());
  EXPECT_TRUE(*queue_.Flush(here_.get()));
  EXPECT_TRUE(queue_.empty());
  const std::vector<Frame> frames = ReadFrames();
  ASSERT_EQ(frames.size(), 100u);
  for (size_t size = 0; size < 100; ++size) EXPECT_EQ(frames[size].body, Numbered(size));
}

TEST_F(UnixFrameTest, TheLongestFrameTakesSeveralReads) {
  const Bytes body = Numbered(kMaxFrame);
  ASSERT_TRUE(queue_.Add(body, {}).ok());
  std::vector<Frame> frames;
  int rounds = 0;
  for (bool sent = false; !sent; ++rounds) {
    sent = *queue_.Flush(here_.get());
    for (Frame& frame : ReadFrames()) frames.push_back(std::move(frame));
  }
  EXPECT_GT(rounds, 1);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].body, body);
}

TEST_F(UnixFrameTest, AFrameCanComeByteByByte) {
  for (const uint8_t byte : Bytes{2, 0, 0, 0, 'h'}) {
    SendRaw({byte});
    EXPECT_TRUE(ReadFrames().empty());
    EXPECT_TRUE(status_.ok());
  }
  SendRaw({'i'});
  const std::vector<Frame> frames = ReadFrames();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].body, (Bytes{'h', 'i'}));
}

TEST_F(UnixFrameTest, DescriptorsComeWithTheirFrame) {
  const FileDescriptor null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int fds[] = {null.get(), here_.get()};
  ASSERT_TRUE(queue_.Add({{1}}, {}).ok());
  ASSERT_TRUE(queue_.Add({{2}}, fds).ok());
  ASSERT_TRUE(queue_.Add({{3}}, {}).ok());
  ASSERT_TRUE(queue_.Add({}, absl::MakeConstSpan(fds, 1)).ok());
  EXPECT_TRUE(*queue_.Flush(here_.get()));
  const std::vector<Frame> frames = ReadFrames();
  ASSERT_EQ(frames.size(), 4u);
  EXPECT_TRUE(frames[0].descriptors.empty());
  ASSERT_EQ(frames[1].descriptors.size(), 2u);
  EXPECT_TRUE(SameFile(frames[1].descriptors[0].get(), null.get()));
  EXPECT_TRUE(SameFile(frames[1].descriptors[1].get(), here_.get()));
  EXPECT_TRUE(frames[2].descriptors.empty());
  ASSERT_EQ(frames[3].descriptors.size(), 1u);
  EXPECT_NE(fcntl(frames[3].descriptors[0].get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(UnixFrameTest, AQueuedDescriptorMayBeClosed) {
  FileDescriptor null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int fd = null.get();
  ASSERT_TRUE(queue_.Add({}, {fd}).ok());
  null.Close();
  EXPECT_TRUE(*queue_.Flush(here_.get()));
  EXPECT_EQ(ReadFrames().at(0).descriptors.size(), 1u);
}

TEST_F(UnixFrameTest, AnInvalidDescriptorIsRefusedAndNothingQueued) {
  EXPECT_FALSE(queue_.Add({{1}}, {-1}).ok());
  EXPECT_TRUE(queue_.empty());
}

TEST_F(UnixFrameTest, DescriptorsOfALongFrameComeWithIt) {
  const Bytes body = Numbered(500'000);
  ASSERT_TRUE(queue_.Add({{1}}, {}).ok());
  ASSERT_TRUE(queue_.Add(body, {here_.get()}).ok());
  ASSERT_TRUE(queue_.Add(body, {there_.get()}).ok());
  std::vector<Frame> frames;
  for (bool sent = false; !sent;) {
    sent = *queue_.Flush(here_.get());
    for (Frame& frame : ReadFrames()) frames.push_back(std::move(frame));
  }
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_TRUE(SameFile(frames[1].descriptors.at(0).get(), here_.get()));
  EXPECT_TRUE(SameFile(frames[2].descriptors.at(0).get(), there_.get()));
  EXPECT_EQ(frames[2].body, body);
}

TEST_F(UnixFrameTest, DescriptorsNobodyTakesAreClosed) {
  const int before = OpenDescriptors();
  {
    FrameQueue queue;
    FrameAssembler assembler;
    ASSERT_TRUE(queue.Add({{1}}, {here_.get()}).ok());
    ASSERT_TRUE(queue.Add({{1}}, {here_.get()}).ok());
    EXPECT_TRUE(*queue.Flush(here_.get()));
    ASSERT_TRUE(queue.Add({{1}}, {here_.get()}).ok());
    EXPECT_TRUE(assembler.ReadSome(there_.get()).ok());
    Frame frame;
    EXPECT_TRUE(assembler.Next(&frame));
  }
  uint8_t rest[16];
  EXPECT_GT(read(there_.get(), rest, sizeof(rest)), 0);
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(UnixFrameTest, AFullSocketKeepsTheRest) {
  const Bytes body = Numbered(100'000);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(queue_.Add(body, {}).ok());
  EXPECT_FALSE(*queue_.Flush(here_.get()));
  EXPECT_FALSE(queue_.empty());
  size_t count = ReadFrames().size();
  while (!*queue_.Flush(here_.get())) count += ReadFrames().size();
  count += ReadFrames().size();
  EXPECT_EQ(count, 20u);
}

TEST_F(UnixFrameTest, NothingToReadIsNoError) { EXPECT_FALSE(*assembler_.ReadSome(there_.get())); }

TEST_F(UnixFrameTest, TheOtherSidesEndIsSeenAfterItsFrames) {
  ASSERT_TRUE(queue_.Add({{1}}, {}).ok());
  EXPECT_TRUE(*queue_.Flush(here_.get()));
  here_.Close();
  EXPECT_EQ(ReadFrames().size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(status_)) << status_;
}

TEST_F(UnixFrameTest, SendingToNobodyIsUnavailable) {
  there_.Close();
  ASSERT_TRUE(queue_.Add({{1}}, {}).ok());
  EXPECT_TRUE(absl::IsUnavailable(queue_.Flush(here_.get()).status()));
}

TEST_F(UnixFrameTest, AFrameThatIsTooLongIsRefusedByItsHeader) {
  SendRaw(Header(kMaxFrame + 1, 0));
  EXPECT_TRUE(ReadFrames().empty());
  EXPECT_TRUE(assembler_.bad());
  EXPECT_TRUE(absl::IsInvalidArgument(assembler_.ReadSome(there_.get()).status()));
}

TEST_F(UnixFrameTest, TooManyDescriptorsAreRefusedByTheHeader) {
  SendRaw(Header(0, kMaxDescriptors + 1));
  EXPECT_TRUE(ReadFrames().empty());
  EXPECT_TRUE(assembler_.bad());
}

TEST_F(UnixFrameTest, MoreDescriptorsThanAFrameCarriesAreRefused) {
  const int before = OpenDescriptors();
  SendRaw(Header(1, 0), std::vector<int>(kMaxDescriptors + 1, here_.get()));
  EXPECT_TRUE(ReadFrames().empty());
  EXPECT_TRUE(assembler_.bad());
  assembler_ = FrameAssembler();
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(UnixFrameTest, DescriptorsThatNoFrameClaimsAreRefused) {
  SendRaw(Header(0, 0), {here_.get()});
  ReadFrames();
  EXPECT_TRUE(assembler_.bad());
}

TEST_F(UnixFrameTest, MissingDescriptorsAreRefused) {
  SendRaw(Header(0, 1));
  EXPECT_TRUE(ReadFrames().empty());
  EXPECT_TRUE(assembler_.bad());
}

TEST_F(UnixFrameTest, AProcessOutOfDescriptorsGetsARemedy) {
  FrameQueue queue;
  const int two[] = {here_.get(), here_.get()};
  ASSERT_TRUE(queue.Add({{1}}, two).ok());
  ASSERT_TRUE(*queue.Flush(here_.get()));
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const FileDescriptor lowest(dup(STDIN_FILENO));
  const rlimit one_more = {static_cast<rlim_t>(lowest.get() + 2), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &one_more), 0);
  const absl::Status why = assembler_.ReadSome(there_.get()).status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(why)) << why;
  EXPECT_NE(why.message().find("ulimit -n"), absl::string_view::npos) << why;
}

TEST_F(UnixFrameTest, AFrameThatNeverEndsGathersNoDescriptors) {
  SendRaw(Header(1000, 1), {here_.get()});
  ReadFrames();
  EXPECT_FALSE(assembler_.bad());
  SendRaw({1}, {here_.get()});
  ReadFrames();
  EXPECT_TRUE(assembler_.bad());
}

TEST_F(UnixFrameTest, RandomBytesNeverBreakTheReader) {
  base::Random random(1);
  for (int round = 0; round < 300; ++round) {
    FrameAssembler assembler;
    std::swap(assembler, assembler_);
    for (int part = 0; part < 10 && !assembler_.bad(); ++part) {
      Bytes bytes(1 + random.Below(300));
      for (uint8_t& byte : bytes) byte = random.Chance(0.7) ? 0 : static_cast<uint8_t>(random.Next());
      SendRaw(bytes, random.Chance(0.2) ? std::vector<int>(1 + random.Below(3), here_.get()) : std::vector<int>());
      for (const Frame& frame : ReadFrames()) EXPECT_LE(frame.body.size(), kMaxFrame);
    }
    char rest[4096];
    while (recv(there_.get(), rest, sizeof(rest), MSG_DONTWAIT) > 0) {
    }
  }
}

}  // namespace
}  // namespace tokamak::os
