// UserContext is a device that a program has opened: it carries out the commands that the kernel's
// /dev/infiniband/uverbsN takes by write(), with the checks and the errno values of the kernel.
//
// Objects that a program made and did not destroy go with its context.
//
// Errors are errno values, 0 is success. If an answer cannot be copied to the program (EFAULT), no
// object was made. Thread rule: one lock's, except for Prepare.
#pragma once

#include <rdma/ib_user_verbs.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "lib/verbs/kernel/async_events.h"
#include "lib/verbs/kernel/object_table.h"
#include "lib/verbs/kernel/program/command.h"
#include "lib/verbs/kernel/program/ring_memory.h"
#include "lib/verbs/kernel/user_completion_queue.h"
#include "lib/verbs/kernel/user_device.h"
#include "lib/verbs/kernel/user_queue_pair.h"
#include "lib/verbs/kernel/user_shared_receives.h"

namespace tokamak::verbs::kernel {

class UserContext final : public PortListener {
 public:
  // `on_channel` gets each descriptor from which the program reads events. Returns null without
  // memory or descriptors.
  static std::unique_ptr<UserContext> Open(UserDevice& device, std::function<void(int descriptor)> on_channel);
  ~UserContext();

  // Returns the device's descriptor for the program; -1 if the process can have no more.
  int MakeDescriptor() const { return memory_->Duplicate(); }

  size_t device_index() const { return device_.identity().index; }

  // Does the part of a command that may take long: call it before Execute, from any thread, without
  // the lock.
  static int Prepare(const Command& command);

  int Execute(const Command& command);

  // Rings the doorbell of a queue pair, as Execute does: the one command of the data path.
  int PostSend(uint32_t queue_pair);

  // Returns the number of completions in a queue that the program has not taken; 0 if there is no
  // such queue.
  uint32_t CompletionsIn(uint32_t handle) const;

  // The program has closed a descriptor, of a completion channel or another.
  void OnClosed(int descriptor) { channels_.erase(descriptor); }

  void OnPort(bool active) override;

  // The NIC reports that a shared receive queue has reached its limit.
  void OnReceiveLimit(const SharedReceiveQueue* queue);

 private:
  UserContext(UserDevice& device, std::unique_ptr<RingMemory> memory, std::function<void(int)> on_channel)
      : device_(device), memory_(std::move(memory)), on_channel_(std::move(on_channel)) {}

  int ExecuteBasic(const Command& command);
  int ExecuteExtended(const Command& command);

  // Decodes the request of a command, then carries it out by `act`.
  template <typename Request>
  int With(const Command& command, int (UserContext::*act)(const Command&, const Request&));
  // The same for a command without a response.
  template <typename Request>
  int With(const Command& command, int (UserContext::*act)(const Request&));

  // Destroys the T that the request names in its member `handle`.
  template <typename T, typename Request>
  int Destroy(const Command& command, uint32_t Request::*handle);
  // Destroys a T whose events are counted: `retire` takes back the unread ones, and returns the
  // response with the number of those read.
  template <typename T, typename Retire>
  int DestroyCounted(const Command& command, uint32_t handle, Retire retire);
  // Answers with the handle of a new object; if that fails, destroys the object.
  template <typename T, typename... Responses>
  int PutOrDestroy(const Command& command, const T& made, const Responses&... responses);

  int GetContext(const Command& command);
  int QueryDevice(const Command& command);
  int QueryDeviceExtended(const Command& command, const ib_uverbs_ex_query_device& request);
  int QueryPort(const Command& command, const ib_uverbs_query_port& request);
  int AllocateDomain(const Command& command);
  int RegisterRegion(const Command& command, const ib_uverbs_reg_mr& request);
  int ReregisterRegion(const Command& command, const ib_uverbs_rereg_mr& request);
  int AllocateWindow(const Command& command, const ib_uverbs_alloc_mw& request);
  int CreateChannel(const Command& command);
  int CreateCompletionQueue(const Command& command, const ib_uverbs_create_cq& request);
  int CreateCompletionQueueExtended(const Command& command, const ib_uverbs_ex_create_cq& request);
  template <typename Request>
  int MakeCompletionQueue(const Request& request, UserCompletionQueue** made);
  int ResizeCompletionQueue(const Command& command, const ib_uverbs_resize_cq& request);
  int DestroyCompletionQueue(const Command& command, const ib_uverbs_destroy_cq& request);
  int RequestNotify(const ib_uverbs_req_notify_cq& request);
  int CreateSharedReceives(const Command& command, const ib_uverbs_create_srq& request);
  int ModifySharedReceives(const Command& command, const ib_uverbs_modify_srq& request);
  int QuerySharedReceives(const Command& command, const ib_uverbs_query_srq& request);
  int DestroySharedReceives(const Command& command, const ib_uverbs_destroy_srq& request);
  int CreateQueuePair(const Command& command, const ib_uverbs_create_qp& request);
  int CreateQueuePairExtended(const Command& command, const ib_uverbs_ex_create_qp& request);
  template <typename Request>
  int MakeQueuePair(const Request& request, UserQueuePair** made);
  int ModifyQueuePair(const ib_uverbs_modify_qp& request);
  int QueryQueuePair(const Command& command, const ib_uverbs_query_qp& request);
  int DestroyQueuePair(const Command& command, const ib_uverbs_destroy_qp& request);
  int CreateAddress(const Command& command, const ib_uverbs_create_ah& request);
  int ChangeGroups(const Command& command, const ib_uverbs_attach_mcast& request);

  UserDevice& device_;
  const std::unique_ptr<RingMemory> memory_;
  const std::function<void(int)> on_channel_;
  std::unique_ptr<AsyncEvents> async_;  // null before GetContext
  std::map<int, std::shared_ptr<EventPipe>> channels_;
  std::unique_ptr<DeviceWatch> watch_;
  ObjectTable objects_;
  std::map<const SharedReceiveQueue*, UserSharedReceives*> limits_;  // those with a limit to reach
};

}  // namespace tokamak::verbs::kernel
