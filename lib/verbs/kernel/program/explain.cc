#include "lib/verbs/kernel/program/explain.h"

#include <infiniband/verbs.h>

#include "lib/verbs/kernel/program/rxe_abi.h"
// Not before netinet/in.h.
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_cm.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/verbs/kernel/program/translate.h"
#include "lib/verbs/soft/udp/udp_socket.h"

namespace tokamak::verbs::kernel {
namespace {

struct Name {
  uint32_t value;
  const char* text;
};

constexpr Name kCommands[] = {
    {IB_USER_VERBS_CMD_GET_CONTEXT, "get_context"},
    {IB_USER_VERBS_CMD_QUERY_DEVICE, "query_device"},
    {IB_USER_VERBS_CMD_QUERY_PORT, "query_port"},
    {IB_USER_VERBS_CMD_ALLOC_PD, "alloc_pd"},
    {IB_USER_VERBS_CMD_DEALLOC_PD, "dealloc_pd"},
    {IB_USER_VERBS_CMD_CREATE_AH, "create_ah"},
    {IB_USER_VERBS_CMD_DESTROY_AH, "destroy_ah"},
    {IB_USER_VERBS_CMD_REG_MR, "reg_mr"},
    {IB_USER_VERBS_CMD_REREG_MR, "rereg_mr"},
    {IB_USER_VERBS_CMD_DEREG_MR, "dereg_mr"},
    {IB_USER_VERBS_CMD_ALLOC_MW, "alloc_mw"},
    {IB_USER_VERBS_CMD_DEALLOC_MW, "dealloc_mw"},
    {IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, "create_comp_channel"},
    {IB_USER_VERBS_CMD_CREATE_CQ, "create_cq"},
    {IB_USER_VERBS_CMD_RESIZE_CQ, "resize_cq"},
    {IB_USER_VERBS_CMD_DESTROY_CQ, "destroy_cq"},
    {IB_USER_VERBS_CMD_REQ_NOTIFY_CQ, "req_notify_cq"},
    {IB_USER_VERBS_CMD_CREATE_QP, "create_qp"},
    {IB_USER_VERBS_CMD_QUERY_QP, "query_qp"},
    {IB_USER_VERBS_CMD_MODIFY_QP, "modify_qp"},
    {IB_USER_VERBS_CMD_DESTROY_QP, "destroy_qp"},
    {IB_USER_VERBS_CMD_POST_SEND, "post_send"},
    {IB_USER_VERBS_CMD_ATTACH_MCAST, "attach_mcast"},
    {IB_USER_VERBS_CMD_DETACH_MCAST, "detach_mcast"},
    {IB_USER_VERBS_CMD_CREATE_SRQ, "create_srq"},
    {IB_USER_VERBS_CMD_MODIFY_SRQ, "modify_srq"},
    {IB_USER_VERBS_CMD_QUERY_SRQ, "query_srq"},
    {IB_USER_VERBS_CMD_DESTROY_SRQ, "destroy_srq"},
    {IB_USER_VERBS_CMD_OPEN_XRCD, "open_xrcd"},
    {IB_USER_VERBS_CMD_CREATE_XSRQ, "create_xsrq"},
    {IB_USER_VERBS_CMD_OPEN_QP, "open_qp"},
    {IB_USER_VERBS_EX_CMD_CREATE_FLOW, "create_flow"},
};

constexpr Name kManagerCommands[] = {
    {RDMA_USER_CM_CMD_CREATE_ID, "create_id"},
    {RDMA_USER_CM_CMD_DESTROY_ID, "destroy_id"},
    {RDMA_USER_CM_CMD_BIND_IP, "bind_ip"},
    {RDMA_USER_CM_CMD_RESOLVE_IP, "resolve_ip"},
    {RDMA_USER_CM_CMD_RESOLVE_ROUTE, "resolve_route"},
    {RDMA_USER_CM_CMD_QUERY_ROUTE, "query_route"},
    {RDMA_USER_CM_CMD_CONNECT, "connect"},
    {RDMA_USER_CM_CMD_LISTEN, "listen"},
    {RDMA_USER_CM_CMD_ACCEPT, "accept"},
    {RDMA_USER_CM_CMD_REJECT, "reject"},
    {RDMA_USER_CM_CMD_DISCONNECT, "disconnect"},
    {RDMA_USER_CM_CMD_INIT_QP_ATTR, "init_qp_attr"},
    {RDMA_USER_CM_CMD_GET_EVENT, "get_event"},
    {RDMA_USER_CM_CMD_SET_OPTION, "set_option"},
    {RDMA_USER_CM_CMD_NOTIFY, "notify"},
    {RDMA_USER_CM_CMD_JOIN_IP_MCAST, "join_ip_mcast"},
    {RDMA_USER_CM_CMD_LEAVE_MCAST, "leave_mcast"},
    {RDMA_USER_CM_CMD_MIGRATE_ID, "migrate_id"},
    {RDMA_USER_CM_CMD_QUERY, "query"},
    {RDMA_USER_CM_CMD_BIND, "bind"},
    {RDMA_USER_CM_CMD_RESOLVE_ADDR, "resolve_addr"},
    {RDMA_USER_CM_CMD_JOIN_MCAST, "join_mcast"},
};

constexpr Name kTypes[] = {
    {IBV_QPT_RC, "RC"},
    {IBV_QPT_UC, "UC"},
    {IBV_QPT_UD, "UD"},
    {IBV_QPT_RAW_PACKET, "RAW_PACKET"},
    {IBV_QPT_XRC_SEND, "XRC_SEND"},
    {IBV_QPT_XRC_RECV, "XRC_RECV"},
    {IBV_QPT_DRIVER, "DRIVER"},
};

constexpr Name kStates[] = {
    {IBV_QPS_RESET, "RESET"}, {IBV_QPS_INIT, "INIT"}, {IBV_QPS_RTR, "RTR"}, {IBV_QPS_RTS, "RTS"},
    {IBV_QPS_SQD, "SQD"},     {IBV_QPS_SQE, "SQE"},   {IBV_QPS_ERR, "ERR"},
};

constexpr Name kAccess[] = {
    {IBV_ACCESS_LOCAL_WRITE, "local_write"},
    {IBV_ACCESS_REMOTE_WRITE, "remote_write"},
    {IBV_ACCESS_REMOTE_READ, "remote_read"},
    {IBV_ACCESS_REMOTE_ATOMIC, "remote_atomic"},
    {IBV_ACCESS_MW_BIND, "mw_bind"},
    {IBV_ACCESS_ZERO_BASED, "zero_based"},
    {IBV_ACCESS_ON_DEMAND, "on_demand"},
    {IBV_ACCESS_HUGETLB, "hugetlb"},
    {IBV_ACCESS_RELAXED_ORDERING, "relaxed_ordering"},
};

constexpr Name kEvents[] = {
    {0, "ADDR_RESOLVED"},   {1, "ADDR_ERROR"},       {2, "ROUTE_RESOLVED"}, {3, "ROUTE_ERROR"},
    {4, "CONNECT_REQUEST"}, {5, "CONNECT_RESPONSE"}, {6, "CONNECT_ERROR"},  {7, "UNREACHABLE"},
    {8, "REJECTED"},        {9, "ESTABLISHED"},      {10, "DISCONNECTED"},  {11, "DEVICE_REMOVAL"},
    {12, "MULTICAST_JOIN"}, {13, "MULTICAST_ERROR"}, {14, "ADDR_CHANGE"},   {15, "TIMEWAIT_EXIT"},
};

constexpr uint32_t kMulticastJoin = 12;

template <size_t kCount>
std::string NameOf(const Name (&names)[kCount], uint32_t value) {
  for (const Name& name : names) {
    if (name.value == value) return name.text;
  }
  return absl::StrCat(value);
}

std::string AccessText(uint32_t flags) {
  std::vector<std::string> names;
  for (const Name& name : kAccess) {
    if ((flags & name.value) != 0) names.emplace_back(name.text);
  }
  return names.empty() ? "none" : absl::StrJoin(names, "|");
}

std::string Hex(uint64_t value) { return absl::StrCat("0x", absl::Hex(value)); }

std::string Result(int error, const std::string& made) {
  if (error != 0) return absl::StrCat(" = ", std::strerror(error));
  return absl::StrCat(" = ", made.empty() ? "0" : made);
}

// Returns the program's request, with zeros where it is shorter.
template <typename T>
T Request(const Command& command) {
  T request;
  if (command.Get(&request) != 0) std::memset(static_cast<void*>(&request), 0, sizeof(request));
  return request;
}

template <typename T>
std::string QueuePairWords(const T& request) {
  std::string text =
      absl::StrCat("type ", NameOf(kTypes, request.qp_type), ", pd ", request.pd_handle, ", send_cq ",
                   request.send_cq_handle, ", recv_cq ", request.recv_cq_handle, ", max_send_wr ", request.max_send_wr,
                   ", max_recv_wr ", request.max_recv_wr, ", max_inline ", request.max_inline_data);
  if (request.is_srq != 0) absl::StrAppend(&text, ", srq ", request.srq_handle);
  return text;
}

std::string Peer(const uint8_t (&gid)[16]) { return AddressOfGid(gid).ToString(); }

std::string ModifyWords(const ib_uverbs_modify_qp& request) {
  std::string text = absl::StrCat("qp ", request.qp_handle);
  const auto add = [&](uint32_t bit, const char* name, const std::string& value) {
    if ((request.attr_mask & bit) != 0) absl::StrAppend(&text, ", ", name, " ", value);
  };
  add(IBV_QP_STATE, "state", NameOf(kStates, request.qp_state));
  add(IBV_QP_ACCESS_FLAGS, "access", AccessText(request.qp_access_flags));
  add(IBV_QP_PORT, "port", absl::StrCat(request.port_num));
  add(IBV_QP_QKEY, "qkey", Hex(request.qkey));
  add(IBV_QP_AV, "peer", Peer(request.dest.dgid));
  add(IBV_QP_DEST_QPN, "peer's number", Hex(request.dest_qp_num));
  add(IBV_QP_PATH_MTU, "path_mtu", absl::StrCat(MtuBytes(request.path_mtu)));
  add(IBV_QP_RQ_PSN, "rq_psn", Hex(request.rq_psn));
  add(IBV_QP_SQ_PSN, "sq_psn", Hex(request.sq_psn));
  add(IBV_QP_TIMEOUT, "timeout", absl::StrCat(request.timeout));
  add(IBV_QP_RETRY_CNT, "retry_cnt", absl::StrCat(request.retry_cnt));
  add(IBV_QP_RNR_RETRY, "rnr_retry", absl::StrCat(request.rnr_retry));
  add(IBV_QP_MAX_QP_RD_ATOMIC, "max_rd_atomic", absl::StrCat(request.max_rd_atomic));
  add(IBV_QP_MAX_DEST_RD_ATOMIC, "max_dest_rd_atomic", absl::StrCat(request.max_dest_rd_atomic));
  return text;
}

std::string Arguments(const Command& command) {
  switch (command.number()) {
    case IB_USER_VERBS_CMD_QUERY_PORT:
      return absl::StrCat("port ", Request<ib_uverbs_query_port>(command).port_num);
    case IB_USER_VERBS_CMD_DEALLOC_PD:
      return absl::StrCat("pd ", Request<ib_uverbs_dealloc_pd>(command).pd_handle);
    case IB_USER_VERBS_CMD_REG_MR: {
      const auto request = Request<ib_uverbs_reg_mr>(command);
      return absl::StrCat("pd ", request.pd_handle, ", address ", Hex(request.start), ", length ", request.length,
                          request.hca_va == request.start ? "" : ", iova " + Hex(request.hca_va), ", access ",
                          AccessText(request.access_flags));
    }
    case IB_USER_VERBS_CMD_REREG_MR: {
      const auto request = Request<ib_uverbs_rereg_mr>(command);
      std::string text = absl::StrCat("mr ", request.mr_handle);
      if ((request.flags & IBV_REREG_MR_CHANGE_PD) != 0) absl::StrAppend(&text, ", pd ", request.pd_handle);
      if ((request.flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
        absl::StrAppend(&text, ", address ", Hex(request.start), ", length ", request.length);
      }
      if ((request.flags & IBV_REREG_MR_CHANGE_ACCESS) != 0) {
        absl::StrAppend(&text, ", access ", AccessText(request.access_flags));
      }
      return text;
    }
    case IB_USER_VERBS_CMD_ALLOC_MW: {
      const auto request = Request<ib_uverbs_alloc_mw>(command);
      return absl::StrCat("pd ", request.pd_handle, ", type ", request.mw_type);
    }
    case IB_USER_VERBS_CMD_DEALLOC_MW:
      return absl::StrCat("mw ", Request<ib_uverbs_dealloc_mw>(command).mw_handle);
    case IB_USER_VERBS_CMD_DEREG_MR:
      return absl::StrCat("mr ", Request<ib_uverbs_dereg_mr>(command).mr_handle);
    case IB_USER_VERBS_CMD_CREATE_AH: {
      const auto request = Request<ib_uverbs_create_ah>(command);
      return absl::StrCat("pd ", request.pd_handle, ", peer ", Peer(request.attr.grh.dgid));
    }
    case IB_USER_VERBS_CMD_DESTROY_AH:
      return absl::StrCat("ah ", Request<ib_uverbs_destroy_ah>(command).ah_handle);
    case IB_USER_VERBS_CMD_CREATE_CQ: {
      if (command.extended()) {
        const auto request = Request<ib_uverbs_ex_create_cq>(command);
        return absl::StrCat("depth ", request.cqe, ", channel ", request.comp_channel);
      }
      const auto request = Request<ib_uverbs_create_cq>(command);
      return absl::StrCat("depth ", request.cqe, ", channel ", request.comp_channel);
    }
    case IB_USER_VERBS_CMD_RESIZE_CQ: {
      const auto request = Request<ib_uverbs_resize_cq>(command);
      return absl::StrCat("cq ", request.cq_handle, ", depth ", request.cqe);
    }
    case IB_USER_VERBS_CMD_DESTROY_CQ:
      return absl::StrCat("cq ", Request<ib_uverbs_destroy_cq>(command).cq_handle);
    case IB_USER_VERBS_CMD_REQ_NOTIFY_CQ: {
      const auto request = Request<ib_uverbs_req_notify_cq>(command);
      return absl::StrCat("cq ", request.cq_handle, request.solicited_only != 0 ? ", solicited only" : "");
    }
    case IB_USER_VERBS_CMD_CREATE_QP:
      return command.extended() ? QueuePairWords(Request<ib_uverbs_ex_create_qp>(command))
                                : QueuePairWords(Request<ib_uverbs_create_qp>(command));
    case IB_USER_VERBS_CMD_QUERY_QP:
      return absl::StrCat("qp ", Request<ib_uverbs_query_qp>(command).qp_handle);
    case IB_USER_VERBS_CMD_MODIFY_QP:
      return ModifyWords(Request<ib_uverbs_modify_qp>(command));
    case IB_USER_VERBS_CMD_DESTROY_QP:
      return absl::StrCat("qp ", Request<ib_uverbs_destroy_qp>(command).qp_handle);
    case IB_USER_VERBS_CMD_POST_SEND:
      return absl::StrCat("qp ", Request<ib_uverbs_post_send>(command).qp_handle);
    case IB_USER_VERBS_CMD_ATTACH_MCAST:
    case IB_USER_VERBS_CMD_DETACH_MCAST: {
      const auto request = Request<ib_uverbs_attach_mcast>(command);
      return absl::StrCat("qp ", request.qp_handle, ", group ", Peer(request.gid));
    }
    case IB_USER_VERBS_CMD_CREATE_SRQ: {
      const auto request = Request<ib_uverbs_create_srq>(command);
      return absl::StrCat("pd ", request.pd_handle, ", max_wr ", request.max_wr, ", max_sge ", request.max_sge);
    }
    case IB_USER_VERBS_CMD_MODIFY_SRQ:
      return absl::StrCat("srq ", Request<ib_uverbs_modify_srq>(command).srq_handle);
    case IB_USER_VERBS_CMD_QUERY_SRQ:
      return absl::StrCat("srq ", Request<ib_uverbs_query_srq>(command).srq_handle);
    case IB_USER_VERBS_CMD_DESTROY_SRQ:
      return absl::StrCat("srq ", Request<ib_uverbs_destroy_srq>(command).srq_handle);
    default:
      return "";
  }
}

std::string Made(const Command& command) {
  switch (command.number()) {
    case IB_USER_VERBS_CMD_ALLOC_PD:
      if (ib_uverbs_alloc_pd_resp made; command.GetResponse(&made)) return absl::StrCat("pd ", made.pd_handle);
      break;
    case IB_USER_VERBS_CMD_REG_MR:
      if (ib_uverbs_reg_mr_resp made; command.GetResponse(&made)) {
        return absl::StrCat("mr ", made.mr_handle, ", lkey ", Hex(made.lkey), ", rkey ", Hex(made.rkey));
      }
      break;
    case IB_USER_VERBS_CMD_ALLOC_MW:
      if (ib_uverbs_alloc_mw_resp made; command.GetResponse(&made)) {
        return absl::StrCat("mw ", made.mw_handle, ", rkey ", Hex(made.rkey));
      }
      break;
    case IB_USER_VERBS_CMD_CREATE_AH:
      if (ib_uverbs_create_ah_resp made; command.GetResponse(&made)) return absl::StrCat("ah ", made.ah_handle);
      break;
    case IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL:
      if (ib_uverbs_create_comp_channel_resp made; command.GetResponse(&made)) {
        return absl::StrCat("channel ", made.fd);
      }
      break;
    case IB_USER_VERBS_CMD_CREATE_CQ:
      if (ib_uverbs_create_cq_resp made; command.GetResponse(&made)) {
        return absl::StrCat("cq ", made.cq_handle, ", depth ", made.cqe);
      }
      break;
    case IB_USER_VERBS_CMD_CREATE_SRQ:
      if (ib_uverbs_create_srq_resp made; command.GetResponse(&made)) return absl::StrCat("srq ", made.srq_handle);
      break;
    case IB_USER_VERBS_CMD_CREATE_QP:
      if (ib_uverbs_create_qp_resp made; command.GetResponse(&made)) {
        return absl::StrCat("qp ", made.qp_handle, ", number ", Hex(made.qpn));
      }
      break;
    default:
      break;
  }
  return "";
}

// ---- The connection manager.

template <typename T>
T ManagerRequest(const void* buffer, size_t size) {
  T request;
  std::memset(static_cast<void*>(&request), 0, sizeof(request));
  const size_t header = sizeof(rdma_ucm_cmd_hdr);
  if (size > header) {
    std::memcpy(static_cast<void*>(&request), static_cast<const uint8_t*>(buffer) + header,
                std::min(sizeof(request), size - header));
  }
  return request;
}

template <typename Sockaddr>
std::string AddressText(const Sockaddr& address) {
  sockaddr_storage storage{};
  std::memcpy(&storage, &address, std::min(sizeof(storage), sizeof(address)));
  if (storage.ss_family != AF_INET && storage.ss_family != AF_INET6) return "none";
  return soft::FromSocketAddress(storage).ToString();
}

std::string ManagerArguments(uint32_t command, const void* buffer, size_t size) {
  switch (command) {
    case RDMA_USER_CM_CMD_CREATE_ID: {
      const auto request = ManagerRequest<rdma_ucm_create_id>(buffer, size);
      const char* const space = request.ps == RDMA_PS_TCP ? "TCP" : request.ps == RDMA_PS_UDP ? "UDP" : "other";
      return absl::StrCat("port space ", space);
    }
    case RDMA_USER_CM_CMD_DESTROY_ID:
      return absl::StrCat("id ", ManagerRequest<rdma_ucm_destroy_id>(buffer, size).id);
    case RDMA_USER_CM_CMD_BIND_IP: {
      const auto request = ManagerRequest<rdma_ucm_bind_ip>(buffer, size);
      return absl::StrCat("id ", request.id, ", address ", AddressText(request.addr));
    }
    case RDMA_USER_CM_CMD_BIND: {
      const auto request = ManagerRequest<rdma_ucm_bind>(buffer, size);
      return absl::StrCat("id ", request.id, ", address ", AddressText(request.addr));
    }
    case RDMA_USER_CM_CMD_RESOLVE_IP: {
      const auto request = ManagerRequest<rdma_ucm_resolve_ip>(buffer, size);
      return absl::StrCat("id ", request.id, ", from ", AddressText(request.src_addr), ", to ",
                          AddressText(request.dst_addr));
    }
    case RDMA_USER_CM_CMD_RESOLVE_ADDR: {
      const auto request = ManagerRequest<rdma_ucm_resolve_addr>(buffer, size);
      return absl::StrCat("id ", request.id, ", from ", AddressText(request.src_addr), ", to ",
                          AddressText(request.dst_addr));
    }
    case RDMA_USER_CM_CMD_RESOLVE_ROUTE:
      return absl::StrCat("id ", ManagerRequest<rdma_ucm_resolve_route>(buffer, size).id);
    case RDMA_USER_CM_CMD_QUERY_ROUTE:
    case RDMA_USER_CM_CMD_QUERY:
      return absl::StrCat("id ", ManagerRequest<rdma_ucm_query>(buffer, size).id);
    case RDMA_USER_CM_CMD_CONNECT: {
      const auto request = ManagerRequest<rdma_ucm_connect>(buffer, size);
      return absl::StrCat("id ", request.id, ", number ", Hex(request.conn_param.qp_num), ", private data of ",
                          request.conn_param.private_data_len, " bytes");
    }
    case RDMA_USER_CM_CMD_LISTEN: {
      const auto request = ManagerRequest<rdma_ucm_listen>(buffer, size);
      return absl::StrCat("id ", request.id, ", backlog ", request.backlog);
    }
    case RDMA_USER_CM_CMD_ACCEPT: {
      const auto request = ManagerRequest<rdma_ucm_accept>(buffer, size);
      return absl::StrCat("id ", request.id, ", number ", Hex(request.conn_param.qp_num), ", private data of ",
                          request.conn_param.private_data_len, " bytes");
    }
    case RDMA_USER_CM_CMD_REJECT:
      return absl::StrCat("id ", ManagerRequest<rdma_ucm_reject>(buffer, size).id);
    case RDMA_USER_CM_CMD_DISCONNECT:
      return absl::StrCat("id ", ManagerRequest<rdma_ucm_disconnect>(buffer, size).id);
    case RDMA_USER_CM_CMD_INIT_QP_ATTR: {
      const auto request = ManagerRequest<rdma_ucm_init_qp_attr>(buffer, size);
      return absl::StrCat("id ", request.id, ", state ", NameOf(kStates, request.qp_state));
    }
    case RDMA_USER_CM_CMD_JOIN_IP_MCAST: {
      const auto request = ManagerRequest<rdma_ucm_join_ip_mcast>(buffer, size);
      return absl::StrCat("id ", request.id, ", group ", AddressText(request.addr));
    }
    case RDMA_USER_CM_CMD_JOIN_MCAST: {
      const auto request = ManagerRequest<rdma_ucm_join_mcast>(buffer, size);
      return absl::StrCat("id ", request.id, ", group ", AddressText(request.addr));
    }
    case RDMA_USER_CM_CMD_LEAVE_MCAST:
      return absl::StrCat("membership ", ManagerRequest<rdma_ucm_destroy_id>(buffer, size).id);
    case RDMA_USER_CM_CMD_SET_OPTION: {
      const auto request = ManagerRequest<rdma_ucm_set_option>(buffer, size);
      return absl::StrCat("id ", request.id, ", level ", request.level, ", option ", request.optname);
    }
    case RDMA_USER_CM_CMD_NOTIFY: {
      const auto request = ManagerRequest<rdma_ucm_notify>(buffer, size);
      return absl::StrCat("id ", request.id, ", event ", request.event);
    }
    case RDMA_USER_CM_CMD_MIGRATE_ID:
      return absl::StrCat("id ", ManagerRequest<rdma_ucm_migrate_id>(buffer, size).id);
    default:
      return "";
  }
}

std::string ManagerMade(uint32_t command, const void* buffer, size_t size) {
  if (command == RDMA_USER_CM_CMD_CREATE_ID) {
    rdma_ucm_create_id_resp made;
    const uint64_t from = ManagerRequest<rdma_ucm_create_id>(buffer, size).response;
    if (CopyFromProgram(from, &made, sizeof(made)) == 0) return absl::StrCat("id ", made.id);
  }
  if (command == RDMA_USER_CM_CMD_JOIN_IP_MCAST || command == RDMA_USER_CM_CMD_JOIN_MCAST) {
    rdma_ucm_create_id_resp made;
    // Both begin with the response's address.
    const uint64_t from = ManagerRequest<rdma_ucm_join_ip_mcast>(buffer, size).response;
    if (CopyFromProgram(from, &made, sizeof(made)) == 0) return absl::StrCat("membership ", made.id);
  }
  if (command == RDMA_USER_CM_CMD_GET_EVENT) {
    rdma_ucm_event_resp event;
    const uint64_t from = ManagerRequest<rdma_ucm_get_event>(buffer, size).response;
    if (CopyFromProgram(from, &event, offsetof(rdma_ucm_event_resp, param)) != 0) return "";
    const auto status = static_cast<int32_t>(event.status);
    const bool of_group = event.event == kMulticastJoin;
    return absl::StrCat(NameOf(kEvents, event.event), of_group ? ", membership " : ", id ", event.id,
                        status == 0 ? "" : absl::StrCat(", status ", status));
  }
  return "";
}

}  // namespace

std::string Explain(const Command& command, int error) {
  return absl::StrCat(NameOf(kCommands, command.number()), "(", Arguments(command), ")",
                      Result(error, error == 0 ? Made(command) : ""));
}

std::string ExplainManager(const void* buffer, size_t size, int error) {
  rdma_ucm_cmd_hdr header{};
  std::memcpy(&header, buffer, std::min(size, sizeof(header)));
  return absl::StrCat(NameOf(kManagerCommands, header.cmd), "(", ManagerArguments(header.cmd, buffer, size), ")",
                      Result(error, error == 0 ? ManagerMade(header.cmd, buffer, size) : ""));
}

}  // namespace tokamak::verbs::kernel
