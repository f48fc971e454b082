// PassedDescriptors passes descriptors with a message on a Unix socket (unix(7), SCM_RIGHTS).
//
// One object serves one message, sent or received; it holds the memory that the message's control
// part points into, so it must outlive the call.
// Thread rule: none.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::os {

constexpr size_t kMaxDescriptors = 4;  // with one message

class PassedDescriptors final {
 public:
  // Before sendmsg(): sends `descriptors` with `message`; they stay open here. One at least,
  // kMaxDescriptors at most.
  void Attach(absl::Span<const int> descriptors, msghdr* message);

  // Before recvmsg() (with MSG_CMSG_CLOEXEC): makes room for descriptors of `message`.
  void Expect(msghdr* message);

  // After recvmsg(): adds all that came, so that none stays open unseen. An error: the kernel
  // closed the others. kInvalidArgument: there were more than kMaxDescriptors. kResourceExhausted:
  // this process may have no more.
  static absl::Status Take(msghdr* message, std::vector<FileDescriptor>* descriptors);

 private:
  alignas(cmsghdr) char control_[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
};

}  // namespace tokamak::os
