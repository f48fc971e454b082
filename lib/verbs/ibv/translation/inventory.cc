#include "lib/verbs/ibv/translation/inventory.h"

#include <infiniband/verbs.h>

#include <cerrno>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/verbs/ibv/translation/attributes.h"

namespace tokamak::verbs::ibv {
namespace {

using DeviceList = std::unique_ptr<ibv_device*, decltype(&ibv_free_device_list)>;
using OpenDevice = std::unique_ptr<ibv_context, decltype(&ibv_close_device)>;

absl::StatusOr<DeviceList> ReadList(int* count) {
  DeviceList list(ibv_get_device_list(count), &ibv_free_device_list);
  if (list == nullptr) return absl::ErrnoToStatus(errno, "ibv_get_device_list");
  return list;
}

std::vector<std::string> Names(const DeviceList& list, int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.emplace_back(ibv_get_device_name(list.get()[i]));
  return names;
}

absl::StatusOr<OpenDevice> Open(const std::string& name) {
  int count = 0;
  const absl::StatusOr<DeviceList> list = ReadList(&count);
  if (!list.ok()) return list.status();
  for (int i = 0; i < count; ++i) {
    ibv_device* const device = list->get()[i];
    if (name != ibv_get_device_name(device)) continue;
    OpenDevice context(ibv_open_device(device), &ibv_close_device);
    if (context == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("ibv_open_device(", name, ")"));
    return context;
  }
  const std::string others = absl::StrJoin(Names(*list, count), ", ");
  return absl::NotFoundError(absl::StrCat("libibverbs has no device ", name,
                                          others.empty() ? ", nor any other" : absl::StrCat("; it has ", others)));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListDevices() {
  int count = 0;
  const absl::StatusOr<DeviceList> list = ReadList(&count);
  if (!list.ok()) return list.status();
  return Names(*list, count);
}

absl::StatusOr<DeviceInventory> Inspect(const std::string& name) {
  const absl::StatusOr<OpenDevice> context = Open(name);
  if (!context.ok()) return context.status();
  ibv_device_attr device = {};
  if (const int error = ibv_query_device(context->get(), &device); error != 0) {
    return absl::ErrnoToStatus(error, absl::StrCat("ibv_query_device(", name, ")"));
  }
  DeviceInventory inventory;
  inventory.firmware = device.fw_ver;
  inventory.max_region = device.max_mr_size;
  for (uint32_t number = 1; number <= device.phys_port_cnt; ++number) {
    ibv_port_attr port = {};
    if (const int error = ibv_query_port(context->get(), static_cast<uint8_t>(number), &port); error != 0) {
      return absl::ErrnoToStatus(error, absl::StrCat("ibv_query_port(", name, ", ", number, ")"));
    }
    PortInventory found;
    found.number = static_cast<uint8_t>(number);
    found.active = port.state == IBV_PORT_ACTIVE;
    found.active_mtu = MtuBytes(port.active_mtu);
    found.max_mtu = MtuBytes(port.max_mtu);
    inventory.ports.push_back(found);
  }
  return inventory;
}

}  // namespace tokamak::verbs::ibv
