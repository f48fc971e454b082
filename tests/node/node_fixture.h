// The fixture of tests of whole nodes.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/text/object_name.h"
#include "sim/cluster/cluster.h"

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
  void Build(size_t hosts, const sim::HostOptions& host = {}, sim::ClusterOptions options = {}) {
    options.on_wrong = [](const std::string& what) { ADD_FAILURE() << what; };
    cluster_ = std::make_unique<sim::Cluster>(options);
    for (size_t i = 0; i < hosts; ++i) cluster_->Add(host);
    cluster_->Settle();
  }
  void TearDown() override { cluster_->ExpectClean(); }

  sim::Host& at(size_t i) { return (*cluster_)[i]; }
  static base::ObjectId Id(const std::string& name) { return base::ObjectId::FromName(name); }
  void Put(size_t i, const std::string& name, uint64_t size, uint64_t metadata = 0) {
    ASSERT_EQ(at(i).Put(name, size, metadata), absl::OkStatus());
    cluster_->Settle();
  }
  // With its name.
  void PutNamed(size_t i, const std::string& name, uint64_t size) {
    ASSERT_EQ(at(i).Put(name, size, 0, *base::ObjectName::For(Id(name), name)), absl::OkStatus());
    cluster_->Settle();
  }
  base::Generation GenerationOn(size_t i, const std::string& name) {
    const auto place = at(i).store().Find(Id(name));
    return place.has_value() ? place->generation : base::kNoGeneration;
  }
  // The object as the program of node `i` reads it; none: it could not within the time.
  base::Generation Read(size_t i, const std::string& name, base::Duration timeout = base::Seconds(5)) {
    const auto got = at(i).StartGet({name}, Within(timeout));
    cluster_->Await(got);
    const GetResult& result = got->results.front();
    at(i).Release(*got);
    return result.location.has_value() ? result.location->generation : base::kNoGeneration;
  }
  // Until some peer is served by node `i`.
  bool Serves(size_t i) {
    return cluster_->RunUntil([&] { return at(i).node().pins_of_peers() > 0; }, base::Seconds(5));
  }
  // Puts a word of `node`'s into the directory that the node itself did not say.
  absl::Status Say(directory::Update::Kind kind, const std::string& name, const directory::NodeId& node,
                   base::Generation generation = base::Generation{77}, uint64_t size = 1000) {
    directory::Update word;
    word.kind = kind;
    word.version = {Id(name), generation};
    word.data_size = size;
    return Say(word, node);
  }
  // That it has what a directory has accepted.
  absl::Status Announce(const std::string& name, const directory::NodeId& node) {
    directory::Update word;
    word.version = {Id(name), base::Generation{77}};
    word.standing = directory::Standing::kEstablished;
    return Say(word, node);
  }
  absl::Status Say(const directory::Update& word, const directory::NodeId& node) {
    absl::Status said = absl::InternalError("no answer");
    const base::Pending call = at(0).served()->Update(node, {}, {word}, base::Seconds(1),
                                                      [&](const absl::StatusOr<directory::UpdateStatuses>& statuses) {
                                                        said = statuses.ok() ? statuses->front() : statuses.status();
                                                      });
    cluster_->RunFor(base::Microseconds(1));
    return said;
  }
  // Returns the holders that the directory names.
  std::vector<directory::NodeId> Holders(const std::string& name) {
    std::vector<directory::NodeId> holders;
    bool answered = false;
    directory::LocateRequest request;
    request.id = Id(name);
    request.deadline = base::Seconds(1);
    const base::Pending call =
        at(0).served()->Locate(request, [&](const absl::StatusOr<directory::LocatedObject>& info) {
          answered = true;
          if (info.ok()) holders = info->holders;
        });
    cluster_->RunUntil([&] { return answered; });
    std::sort(holders.begin(), holders.end());
    return holders;
  }

  std::unique_ptr<sim::Cluster> cluster_;
};

}  // namespace tokamak::node
