// PassedDescriptors passes descriptors with a message on a Unix socket (unix(7), SCM_RIGHTS).
//
// One object serves one message, sent or received. It holds the message's control part, so it must
// outlive the call. Thread rule: none.
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
  // Called before sendmsg(): sends `descriptors`, one to kMaxDescriptors, with `message`. They stay
  // open here.
  void Attach(absl::Span<const int> descriptors, msghdr* message);

  // Called before recvmsg() (with MSG_CMSG_CLOEXEC): makes room for descriptors of `message`.
  void Expect(msghdr* message);

  // Called after recvmsg(): adds all that came, even with an error, when the kernel closed the
  // others. kInvalidArgument: more than kMaxDescriptors. kResourceExhausted: this process may have
  // no more.
  static absl::Status Take(msghdr* message, std::vector<FileDescriptor>* descriptors);

 private:
  alignas(cmsghdr) char control_[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
};

}  // namespace tokamak::os
