#include "lib/verbs/kernel/event_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <utility>

namespace tokamak::verbs::kernel {
namespace {

constexpr size_t kBatch = 4096;  // bytes, a multiple of every event's size

}  // namespace

// The program decides whether its end blocks; ours is another description of the same pipe.
std::unique_ptr<EventPipe> EventPipe::Make(size_t event_size) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return nullptr;
  os::FileDescriptor program(ends[0]);
  os::FileDescriptor write(ends[1]);
  fcntl(write.get(), F_SETFL, O_NONBLOCK);
  char path[32];
  std::snprintf(path, sizeof(path), "/proc/self/fd/%d", program.get());
  os::FileDescriptor read(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!read.valid()) return nullptr;
  return std::unique_ptr<EventPipe>(new EventPipe(event_size, std::move(program), std::move(read), std::move(write)));
}

EventPipe::EventPipe(size_t event_size, os::FileDescriptor program, os::FileDescriptor read, os::FileDescriptor write)
    : event_size_(event_size), program_(std::move(program)), read_(std::move(read)), write_(std::move(write)) {}

EventPipe::Subject EventPipe::SubjectOf(const uint8_t* event) const {
  Subject subject = 0;
  std::memcpy(&subject, event, sizeof(subject));
  return subject;
}

void EventPipe::Write(const void* event) {
  const auto* bytes = static_cast<const uint8_t*>(event);
  ++written_[SubjectOf(bytes)];
  waiting_.insert(waiting_.end(), bytes, bytes + event_size_);
  Flush();
}

// A write of at most PIPE_BUF bytes is whole or fails.
void EventPipe::Flush() {
  size_t done = 0;
  while (done < waiting_.size() &&
         write(write_.get(), waiting_.data() + done, event_size_) == static_cast<ssize_t>(event_size_)) {
    done += event_size_;
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(done));
}

uint32_t EventPipe::Retire(Subject subject) {
  const auto entry = written_.find(subject);
  if (entry == written_.end()) return 0;
  uint32_t reported = entry->second;
  written_.erase(entry);
  std::vector<uint8_t> unread;
  uint8_t batch[kBatch];
  for (;;) {
    const ssize_t got = read(read_.get(), batch, sizeof(batch));
    if (got <= 0) break;
    unread.insert(unread.end(), batch, batch + got);
  }
  unread.insert(unread.end(), waiting_.begin(), waiting_.end());
  waiting_.clear();
  for (size_t at = 0; at + event_size_ <= unread.size(); at += event_size_) {
    if (SubjectOf(&unread[at]) == subject) {
      --reported;
    } else {
      waiting_.insert(waiting_.end(), &unread[at], &unread[at] + event_size_);
    }
  }
  Flush();
  return reported;
}

}  // namespace tokamak::verbs::kernel
