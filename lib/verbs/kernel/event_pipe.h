// EventPipe is a descriptor from which a program reads events: those of a completion channel, or a
// device's asynchronous ones.
//
// When an event's subject is destroyed, the answer has the number of its events that the program
// has read. So an event names its subject, and Retire takes back the unread ones.
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

  // Events have `event_size` bytes. Null: the process can have no more descriptors.
  static std::unique_ptr<EventPipe> Make(size_t event_size);

  // Hands over the program's end, once; the program closes it.
  int TakeReadEnd() { return program_.Release(); }

  // Queues an event, which begins with its subject; if the pipe is full, it follows at a later
  // Write or Flush.
  void Write(const void* event);
  void Flush();

  // Takes back the unread events of `subject`. Returns how many were read.
  uint32_t Retire(Subject subject);

 private:
  EventPipe(size_t event_size, os::FileDescriptor program, os::FileDescriptor read, os::FileDescriptor write);

  Subject SubjectOf(const uint8_t* event) const;

  const size_t event_size_;
  os::FileDescriptor program_;
  const os::FileDescriptor read_;   // ours, never blocks
  const os::FileDescriptor write_;  // the same
  std::vector<uint8_t> waiting_;    // events without room in the pipe
  std::map<Subject, uint32_t> written_;
};

}  // namespace tokamak::verbs::kernel
