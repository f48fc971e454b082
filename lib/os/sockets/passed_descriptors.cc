#include "lib/os/sockets/passed_descriptors.h"

#include <cstring>

#include "lib/base/check.h"

namespace tokamak::os {

void PassedDescriptors::Attach(absl::Span<const int> descriptors, msghdr* message) {
  CHECK(!descriptors.empty());
  CHECK_LE(descriptors.size(), kMaxDescriptors);
  const size_t size = descriptors.size() * sizeof(int);
  // Clears the padding, too: it is sent.
  std::memset(control_, 0, sizeof(control_));
  message->msg_control = control_;
  message->msg_controllen = CMSG_SPACE(size);
  cmsghdr* const part = CMSG_FIRSTHDR(message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(size);
  std::memcpy(CMSG_DATA(part), descriptors.data(), size);
}

void PassedDescriptors::Expect(msghdr* message) {
  message->msg_control = control_;
  message->msg_controllen = sizeof(control_);
}

absl::Status PassedDescriptors::Take(msghdr* message, std::vector<FileDescriptor>* descriptors) {
  size_t came = 0;
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    came += count;
    for (size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + i * sizeof(int), sizeof(descriptor));
      descriptors->emplace_back(descriptor);
    }
  }
  if ((message->msg_flags & MSG_CTRUNC) == 0) return absl::OkStatus();
  // There was room in the message, so the process lacks descriptors.
  if (came < kMaxDescriptors) {
    return absl::ResourceExhaustedError(
        "this process has no descriptors left for those that the other side sent: close some, or raise its limit "
        "(ulimit -n, LimitNOFILE of a service)");
  }
  return absl::InvalidArgumentError("the other side sent too many descriptors");
}

}  // namespace tokamak::os
