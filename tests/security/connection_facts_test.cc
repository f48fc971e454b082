// Different facts have different prologues, and a handshake between two different ones fails.
#include "lib/security/connection_facts.h"

#include <functional>
#include <set>

#include "gtest/gtest.h"
#include "tests/security/two_sides.h"

namespace tokamak::security {
namespace {

const struct {
  const char* name;
  std::function<void(SideOptions*)> change;
} kChangedFacts[] = {
    {"the protocol's version", [](SideOptions* o) { o->version = 9; }},
    {"the cipher", [](SideOptions* o) { o->suite = CipherSuite::kChaChaPoly; }},
    {"the initiator's address", [](SideOptions* o) { o->initiator_address = "10.0.0.9:4791"; }},
    {"the responder's address", [](SideOptions* o) { o->responder_address = "10.0.0.2:4792"; }},
    {"the initiator's queue pair", [](SideOptions* o) { o->initiator_queue_pair = 18; }},
    {"the responder's queue pair", [](SideOptions* o) { o->responder_queue_pair = 24; }},
    {"the initiator's hello", [](SideOptions* o) { o->initiator_hello[0] ^= 1; }},
    {"the responder's hello", [](SideOptions* o) { o->responder_hello.pop_back(); }},
    {"where one text ends",
     [](SideOptions* o) {
       o->initiator_address += o->initiator_hello[0];
       o->initiator_hello.erase(0, 1);
     }},
    {"the roles",
     [](SideOptions* o) {
       std::swap(o->initiator_address, o->responder_address);
       std::swap(o->initiator_queue_pair, o->responder_queue_pair);
       std::swap(o->initiator_hello, o->responder_hello);
     }},
    {"the secret", [](SideOptions* o) { o->secret[31] ^= 1; }},
};

TEST(ConnectionFactsTest, AHandshakeBetweenDifferentFactsFails) {
  for (const auto& changed : kChangedFacts) {
    SideOptions theirs;
    changed.change(&theirs);
    EXPECT_FALSE(TwoSides(1, SideOptions(), theirs).Run()) << changed.name;
    EXPECT_FALSE(TwoSides(1, theirs, SideOptions()).Run()) << changed.name;
    EXPECT_TRUE(TwoSides(1, theirs, theirs).Run()) << changed.name;
  }
}

TEST(ConnectionFactsTest, EmptyTextsCountAsTexts) {
  ConnectionFacts facts;
  std::set<std::vector<uint8_t>> prologues;
  prologues.insert(facts.Prologue());
  const uint8_t zero[4] = {};
  facts.initiator.address = zero;
  prologues.insert(facts.Prologue());
  facts.initiator = {};
  facts.responder.hello = zero;
  prologues.insert(facts.Prologue());
  EXPECT_EQ(prologues.size(), 3u);
}

}  // namespace
}  // namespace tokamak::security
