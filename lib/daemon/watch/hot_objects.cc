#include "lib/daemon/watch/hot_objects.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace tokamak::daemon {

namespace {

constexpr size_t kPage = 256;  // objects per task

bool IsHotter(const store::StoredObject& a, const store::StoredObject& b) {
  return a.uses != b.uses ? a.uses > b.uses : a.id < b.id;
}

}  // namespace

base::Pending HotObjects::Find(base::EventLoop& loop, const store::Store& store, Done done) {
  return base::Pending(new HotObjects(loop, store, std::move(done)));
}

HotObjects::HotObjects(base::EventLoop& loop, const store::Store& store, Done done)
    : loop_(loop), store_(store), done_(std::move(done)) {
  Continue();
}

void HotObjects::Continue() {
  turn_ = loop_.Post([this] { Look(); });
}

void HotObjects::Look() {
  const std::vector<store::StoredObject> page = store_.List(kPage, last_);
  std::vector<store::StoredObject>& hot = report_.objects;
  for (const store::StoredObject& object : page) {
    if (object.state == store::State::kSealed) hot.push_back(object);
  }
  report_.seen += page.size();
  std::sort(hot.begin(), hot.end(), IsHotter);
  if (hot.size() > kMaxNamed) hot.resize(kMaxNamed);
  if (!page.empty()) last_ = page.back().id;
  if (page.size() == kPage && report_.seen < kMaxSeen) return Continue();
  report_.now = loop_.Now();
  const Done done = std::move(done_);
  done(std::move(report_));  // may destroy this
}

}  // namespace tokamak::daemon
