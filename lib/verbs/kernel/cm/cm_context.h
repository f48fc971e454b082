// CmContext is an event channel of librdmacm: one opened /dev/infiniband/rdma_cm, with the ids made
// through it. It carries out the commands that the kernel's takes by write() (rdma/rdma_user_cm.h).
//
// The descriptor counts the waiting events, so a program may poll it; it fetches one by a command.
//
// Errors are errno values, 0 is success. Thread rule: one lock's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "lib/os/file_descriptor.h"
#include "lib/verbs/kernel/cm/cm_id.h"

namespace tokamak::verbs::kernel {

class CmContext final : public CmEvents {
 public:
  // The most ids of a channel.
  static constexpr size_t kMaxIds = 65536;
  // The most memberships in multicast groups.
  static constexpr size_t kMaxMemberships = 65536;

  // `find` returns a descriptor's channel, for ids that move. `devices` outlive it.
  CmContext(const std::vector<UserDevice*>& devices, std::function<CmContext*(int descriptor)> find);
  ~CmContext();

  bool valid() const { return count_.valid(); }
  // Returns the channel's descriptor for the program; -1 if the process can have no more.
  int MakeDescriptor() const;

  // EAGAIN: the command asks for an event, and there is none; a caller that may block waits for the
  // descriptor and tries again.
  int Execute(const void* buffer, size_t size);

  void Raise(CmId& id, const rdma_ucm_event_resp& event) override;
  uint32_t NewHandle() override;
  void Adopt(std::unique_ptr<CmId> id) override;

 private:
  struct Event {
    CmId* id;  // the id whose events_reported it raises
    rdma_ucm_event_resp event;
  };

  struct Membership {
    CmId* id;
    uint32_t events_reported;  // that the program has taken
  };

  template <typename Request>
  int Get(const void* buffer, size_t size, Request* request) const;
  CmId* Find(uint32_t handle) const;

  int CreateId(const void* buffer, size_t size);
  int DestroyId(const void* buffer, size_t size);
  int BindIp(const void* buffer, size_t size);
  int Bind(const void* buffer, size_t size);
  int ResolveIp(const void* buffer, size_t size);
  int ResolveAddress(const void* buffer, size_t size);
  int ResolveRoute(const void* buffer, size_t size);
  int QueryRoute(const void* buffer, size_t size);
  int Connect(const void* buffer, size_t size);
  int Listen(const void* buffer, size_t size);
  int Accept(const void* buffer, size_t size);
  int Reject(const void* buffer, size_t size);
  int Disconnect(const void* buffer, size_t size);
  int InitAttributes(const void* buffer, size_t size);
  int GetEvent(const void* buffer, size_t size);
  int SetOption(const void* buffer, size_t size);
  int Notify(const void* buffer, size_t size);
  int Migrate(const void* buffer, size_t size);
  int JoinIpGroup(const void* buffer, size_t size);
  int JoinGroup(const void* buffer, size_t size);
  int LeaveGroup(const void* buffer, size_t size);

  int Join(uint32_t id, const sockaddr* group, uint64_t uid, uint64_t response);
  void TakeEvents(absl::FunctionRef<bool(const Event&)> wanted, std::deque<Event>* taken);

  const std::vector<UserDevice*>& devices_;
  const std::function<CmContext*(int)> find_;
  const os::FileDescriptor count_;  // of events_
  std::map<uint32_t, std::unique_ptr<CmId>> ids_;
  std::map<uint32_t, Membership> memberships_;
  std::deque<Event> events_;
};

}  // namespace tokamak::verbs::kernel
