// PassedDescriptors: descriptors that a message on a Unix socket has beside it (unix(7),
// SCM_RIGHTS).
//
// One object is one message's, sent or received; it holds the memory that the message's control
// part points into, so it outlives the call.
// Thread rule: none of their own.
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
  // Before sendmsg(): `descriptors` leave with `message`, and stay open here. One at least,
  // kMaxDescriptors at most.
  void Attach(absl::Span<const int> descriptors, msghdr* message);

  // Before recvmsg() (with MSG_CMSG_CLOEXEC): room for what comes with `message`.
  void Expect(msghdr* message);

  // After it: adds all that came, so that none stays open unseen. An error: the kernel closed the
  // others. kInvalidArgument: there were more than kMaxDescriptors. kResourceExhausted: this
  // process may have no more.
  static absl::Status Take(msghdr* message, std::vector<FileDescriptor>* descriptors);

 private:
  alignas(cmsghdr) char control_[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
};

}  // namespace tokamak::os
