// PassedDescriptors passes descriptors with a message on a Unix socket (unix(7), SCM_RIGHTS).
//
// One for each message, whose control part it holds: it outlives the call. Thread rule: none.
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
  // Adds, before sendmsg(), one to kMaxDescriptors, which stay open here.
  void Attach(absl::Span<const int> descriptors, msghdr* message);

  // Makes room, before recvmsg() (with MSG_CMSG_CLOEXEC).
  void Expect(msghdr* message);

  // Adds, after recvmsg(), all that came; with an error the kernel closed the others.
  // kInvalidArgument: more than kMaxDescriptors. kResourceExhausted: this process may have no more.
  static absl::Status Take(msghdr* message, std::vector<FileDescriptor>* descriptors);

 private:
  alignas(cmsghdr) char control_[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
};

}  // namespace tokamak::os
