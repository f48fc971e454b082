// The fixture of tests of whole nodes.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/node/cluster.h"

namespace tokamak::node {

inline GetOptions Within(base::Duration timeout) {
  GetOptions options;
  options.timeout = timeout;
  return options;
}
inline GetOptions By(transport::Protocol protocol) {
  GetOptions options = Within(base::Seconds(30));
  options.protocol = protocol;
  return options;
}

class NodeTest : public testing::Test {
 protected:
  void Build(size_t machines, const MachineOptions& machine = {}, const ClusterOptions& options = {}) {
    cluster_ = std::make_unique<Cluster>(options);
    for (size_t i = 0; i < machines; ++i) cluster_->Add(machine);
    cluster_->Settle();
  }
  void TearDown() override { cluster_->ExpectClean(); }

  Machine& at(size_t i) { return (*cluster_)[i]; }
  static base::ObjectId Id(const std::string& name) { return base::ObjectId::FromName(name); }
  void Put(size_t i, const std::string& name, uint64_t size, uint64_t metadata = 0) {
    ASSERT_EQ(at(i).Put(name, size, metadata), absl::OkStatus());
    cluster_->Settle();
  }
  // Until some peer is served by node `i`.
  bool Serves(size_t i) {
    return cluster_->RunUntil([&] { return at(i).node->pins_of_peers() > 0; }, base::Seconds(5));
  }
  // Who the directory names.
  std::vector<directory::NodeId> Holders(const std::string& name) {
    std::vector<directory::NodeId> holders;
    bool answered = false;
    at(0).served->Locate(Id(name), {}, base::Seconds(1), [&](const absl::StatusOr<directory::ObjectInfo>& info) {
      answered = true;
      if (info.ok()) holders = info->holders;
    });
    cluster_->RunUntil([&] { return answered; });
    std::sort(holders.begin(), holders.end());
    return holders;
  }

  std::unique_ptr<Cluster> cluster_;
};

}  // namespace tokamak::node
