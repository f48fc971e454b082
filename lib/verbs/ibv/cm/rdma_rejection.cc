#include "lib/verbs/ibv/cm/rdma_rejection.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace tokamak::verbs::ibv {
namespace {

struct Reason {
  int code;
  const char* text;
};

constexpr Reason kReasons[] = {
    {1, "it has no queue pair left"},
    {3, "it has no resources left"},
    {4, "it waited too long"},
    {5, "it does not support what was asked"},
    {6, "it does not know this connection"},
    {8, "nobody listens at this port"},
    {9, "it speaks another transport"},
    {kStaleConnection, "it remembers an earlier connection of this queue pair's number"},
    {12, "wrong GID"},
    {13, "wrong LID"},
    {14, "wrong service level"},
    {15, "wrong traffic class"},
    {26, "the path MTU is larger than its port's"},
    {27, "it serves fewer reads than were asked for"},
    {kConsumerReject, "its application said no"},
};

}  // namespace

std::string EventText(const CmEvent& event) {
  const std::string kind = rdma_event_str(event.type);
  if (event.status == 0) return kind;
  if (event.status < 0) return absl::StrCat(std::strerror(-event.status), " (", kind, ")");
  for (const Reason& reason : kReasons) {
    if (reason.code == event.status) return absl::StrCat(reason.text, " (", kind, ", reason ", event.status, ")");
  }
  return absl::StrCat(kind, ", reason ", event.status);
}

}  // namespace tokamak::verbs::ibv
