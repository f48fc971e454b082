// Witness keeps the history of programs that run on threads of their own, for sim::History to
// judge.
//
// A content is a number, and its bytes follow from the number: whoever reads an object knows what
// was read, and that it is whole.
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "sim/worlds/history.h"
#include "tokamak/client.h"

namespace tokamak::daemon {

class Witness final {
 public:
  // The bytes of a content; its size follows from the number as well.
  static std::vector<uint8_t> Bytes(uint64_t content);

  // Puts a new content, gets, deletes, as a program of `node`.
  Status Put(Client& client, uint32_t node, const std::string& id, bool confirmed);
  Status Get(Client& client, uint32_t node, const std::string& id, Timeout timeout);
  Status Delete(Client& client, uint32_t node, const std::string& id);

  // Puts a new content of the smallest size under each, all at once and not confirmed.
  void PutSmall(Client& client, uint32_t node, const std::vector<std::string>& ids);

  // Gets all of `ids` at once, and returns the contents; 0: none. When everything has healed, and
  // nothing follows (`last`): each must be answered, and on all nodes alike.
  std::vector<uint64_t> GetAll(Client& client, uint32_t node, const std::vector<std::string>& ids, Timeout timeout,
                               bool last);

  // Objects of `node` are gone with it.
  void Lost(uint32_t node);
  // `node` has ended in order, asked to at `begin`, and has handed over the objects that it kept.
  void Left(uint32_t node, int64_t begin);

  // The directory was lost, or replaced by one that lacks its latest entries: contents announced by
  // `begin` stand, and by `end` all have been announced again.
  void DirectoryForgot(int64_t begin, int64_t end);

  // The clock of the history.
  static int64_t Now();

  // How many were answered so: a history in which nothing succeeds, or nothing is refused, judges
  // nothing.
  size_t Count(sim::Operation::Kind kind, sim::Operation::Outcome outcome) const;
  std::string Summary() const;
  // All that was asked about one id (sim::History::Describe).
  std::string Describe(const std::string& id) const;

  // In words; none: everything was as promised.
  std::vector<std::string> Violations() const;

 private:
  size_t Begin(sim::Operation::Kind kind, uint32_t node, const std::string& id, uint64_t content, bool confirmed);
  void End(Client& client, sim::Operation::Kind kind, size_t place, const Status& status);
  void EndGet(size_t place, int64_t end, const std::string& id, const Result<Buffer>& buffer);

  mutable std::mutex mutex_;
  sim::History history_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> torn_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_content_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::pair<sim::Operation::Kind, sim::Operation::Outcome>, size_t> counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tokamak::daemon
