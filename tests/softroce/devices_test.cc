// The lab keeps its word: what a guest's environment names is there, open to programs, and active.
//
// Runs in a guest of ci/softroce only.
#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tokamak {
namespace {

std::string Told(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

struct CloseDevice {
  void operator()(ibv_context* context) const { ibv_close_device(context); }
};
using OpenDevice = std::unique_ptr<ibv_context, CloseDevice>;

OpenDevice Open(const std::string& name) {
  int count = 0;
  ibv_device** devices = ibv_get_device_list(&count);
  OpenDevice open;
  for (int i = 0; i < count; ++i) {
    if (name == ibv_get_device_name(devices[i])) open.reset(ibv_open_device(devices[i]));
  }
  ibv_free_device_list(devices);
  return open;
}

// The index of the GID that is this IPv4 address, or -1.
int FindGid(ibv_context& context, const ibv_port_attr& port, const std::string& address) {
  ibv_gid wanted = {};
  wanted.raw[10] = wanted.raw[11] = 0xff;
  if (inet_pton(AF_INET, address.c_str(), wanted.raw + 12) != 1) return -1;
  for (int index = 0; index < port.gid_tbl_len; ++index) {
    ibv_gid gid = {};
    if (ibv_query_gid(&context, 1, index, &gid) == 0 && std::memcmp(&gid, &wanted, sizeof(gid)) == 0) return index;
  }
  return -1;
}

TEST(LabDevicesTest, ThereAreTwoInOneGuestAndOneInEachOfSeveral) {
  const bool alone = Told("TOKAMAK_LAB_HOSTS") == "1";
  EXPECT_EQ(Words(Told("TOKAMAK_LAB_DEVICES")).size(), alone ? 2u : 1u);
  EXPECT_EQ(Words(Told("TOKAMAK_LAB_ADDRESSES")).size(), Words(Told("TOKAMAK_LAB_DEVICES")).size());
  EXPECT_EQ(Words(Told("TOKAMAK_LAB_PEERS")).size(), alone ? 1u : std::stoul(Told("TOKAMAK_LAB_HOSTS")) - 1);
}

TEST(LabDevicesTest, EachOpensAndItsPortIsActive) {
  for (const std::string& name : Words(Told("TOKAMAK_LAB_DEVICES"))) {
    OpenDevice device = Open(name);
    ASSERT_NE(device, nullptr) << name;
    ibv_port_attr port = {};
    ASSERT_EQ(ibv_query_port(device.get(), 1, &port), 0) << name;
    EXPECT_EQ(port.state, IBV_PORT_ACTIVE) << name;
    EXPECT_EQ(port.active_mtu, IBV_MTU_4096) << name;
  }
}

TEST(LabDevicesTest, EachIsOfItsKindAndSoftRoceHasTheGidOfItsAddress) {
  const std::vector<std::string> names = Words(Told("TOKAMAK_LAB_DEVICES"));
  const std::vector<std::string> addresses = Words(Told("TOKAMAK_LAB_ADDRESSES"));
  const bool iwarp = Told("TOKAMAK_LAB_KIND") == "siw";
  ASSERT_EQ(names.size(), addresses.size());
  for (size_t i = 0; i < names.size(); ++i) {
    OpenDevice device = Open(names[i]);
    ASSERT_NE(device, nullptr) << names[i];
    EXPECT_EQ(device->device->transport_type, iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB) << names[i];
    ibv_port_attr port = {};
    ASSERT_EQ(ibv_query_port(device.get(), 1, &port), 0) << names[i];
    EXPECT_EQ(FindGid(*device, port, addresses[i]) >= 0, !iwarp) << names[i] << " and " << addresses[i];
  }
}

}  // namespace
}  // namespace tokamak
