// EventPipe is a descriptor from which a program reads events: a completion channel, or a device's
// asynchronous events. It is a pipe, so the program reads it and waits for it as for any.
//
// The program reads events, and says later which of them it has dealt with; to destroy what they
// are about it has to be told how many were read. So an event knows its subject, and Retire takes
// the unread ones of a subject back.
//
// Thread rule: one lock's. The program reads in threads of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::verbs::kernel {

class EventPipe final {
 public:
  using Subject = uint64_t;

  // Events have `event_size` bytes. Null without a descriptor.
  static std::unique_ptr<EventPipe> Make(size_t event_size);

  // The program's end, to be given to it once; it closes that.
  int TakeReadEnd() { return program_.Release(); }

  // Queues an event about `subject`, which begins with it. One that finds the pipe full follows
  // when there is room, at the next Write or Flush.
  void Write(const void* event);
  void Flush();

  // Takes back what of `subject` was not read. Returns how many events were.
  uint32_t Retire(Subject subject);

 private:
  EventPipe(size_t event_size, os::FileDescriptor program, os::FileDescriptor read, os::FileDescriptor write);

  Subject SubjectOf(const uint8_t* event) const;

  const size_t event_size_;
  os::FileDescriptor program_;
  const os::FileDescriptor read_;   // ours, which never blocks
  const os::FileDescriptor write_;  // the same
  std::vector<uint8_t> waiting_;    // events that the pipe had no room for
  std::map<Subject, uint32_t> written_;
};

}  // namespace tokamak::verbs::kernel
