// A stream socket that brings any bytes in any pieces, with descriptors beside them: frames come
// out as they were written, or the stream is called bad, and every descriptor is closed.
#include "lib/os/sockets/unix_frame.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/check.h"
#include "lib/os/sockets/passed_descriptors.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

namespace tokamak::fuzz {
namespace {

constexpr int kMostPieces = 40;
constexpr size_t kMostSent = 8;  // descriptors at once: more than a frame may have

int NextDescriptor() {
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  PCHECK(fd >= 0);
  close(fd);
  return fd;
}

void Send(int fd, absl::Span<const uint8_t> bytes, size_t descriptors) {
  iovec piece = {const_cast<uint8_t*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(kMostSent * sizeof(int))] = {};
  if (descriptors > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors * sizeof(int));
    const std::vector<int> copies(descriptors, fd);
    std::memcpy(CMSG_DATA(header), copies.data(), descriptors * sizeof(int));
  }
  PCHECK(sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

// The content of a stream of frames, read without looking at pieces.
class Model final {
 public:
  void Add(absl::Span<const uint8_t> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void Expect(const os::Frame& frame) {
    CHECK(bytes_.size() >= at_ + 4);
    const uint32_t header = base::LoadLittle<uint32_t>(bytes_.data() + at_);
    CHECK_EQ(frame.body.size(), header & 0xffffff);
    CHECK_EQ(frame.descriptors.size(), header >> 24);
    CHECK(bytes_.size() >= at_ + 4 + frame.body.size());
    CHECK(std::equal(frame.body.begin(), frame.body.end(), bytes_.begin() + static_cast<ptrdiff_t>(at_ + 4)));
    at_ += 4 + frame.body.size();
  }

 private:
  std::vector<uint8_t> bytes_;
  size_t at_ = 0;
};

void Try(Input input) {
  int ends[2];
  PCHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const os::FileDescriptor here(ends[0]), there(ends[1]);
  os::FrameAssembler assembler;
  Model model;
  for (int piece = 0; piece < kMostPieces && !input.empty(); ++piece) {
    const uint32_t kind = input.Below(32);
    const size_t descriptors = kind < 24 ? 0 : kind - 23;
    absl::Span<const uint8_t> bytes = input.Bytes(kind % 8 == 7 ? 1000 : 20);
    const uint8_t zero = 0;
    if (bytes.empty()) bytes = {&zero, 1};  // descriptors need a byte to travel with
    Send(there.get(), bytes, std::min(descriptors, kMostSent));
    model.Add(bytes);
    const absl::StatusOr<bool> read = assembler.ReadSome(here.get());
    CHECK(read.ok() || assembler.bad());
    os::Frame frame;
    while (assembler.Next(&frame)) {
      CHECK_LE(frame.body.size(), os::kMaxFrame);
      CHECK_LE(frame.descriptors.size(), os::kMaxDescriptors);
      model.Expect(frame);
    }
    if (!assembler.bad()) continue;
    CHECK(!assembler.ReadSome(here.get()).ok() && !assembler.Next(&frame));
    return;
  }
}

}  // namespace
}  // namespace tokamak::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int before = tokamak::fuzz::NextDescriptor();
  tokamak::fuzz::Try(tokamak::fuzz::Input(data, size));
  CHECK_EQ(tokamak::fuzz::NextDescriptor(), before) << "a descriptor was left open";
  return 0;
}
