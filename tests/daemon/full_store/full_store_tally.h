// FullStoreTally counts what the programs at a full store did, in memory that they share with
// whoever started them: a program that is killed leaves what it has counted.
//
// Thread rule: any thread, any process.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace tokamak::daemon {

struct FullStoreTally {
  std::atomic<uint64_t> created{0};         // and sealed
  std::atomic<uint64_t> refused{0};         // creates, for want of room
  std::atomic<uint64_t> aborted{0};         // creates, by the program
  std::atomic<uint64_t> got{0};             // and verified
  std::atomic<uint64_t> verified_bytes{0};  // of these
  std::atomic<uint64_t> missed{0};          // gets that ended without an object
  std::atomic<uint64_t> deleted{0};
  std::atomic<uint64_t> wrong{0};       // objects whose bytes were not theirs
  std::atomic<uint64_t> unexpected{0};  // answers that no program may be given here

  // The one in the file at `path`, which MakeFile made. Ends the process where it cannot be mapped.
  static std::shared_ptr<FullStoreTally> Map(const std::string& path);
  static void MakeFile(const std::string& path);
};
static_assert(std::atomic<uint64_t>::is_always_lock_free, "they are shared with other processes");

}  // namespace tokamak::daemon
