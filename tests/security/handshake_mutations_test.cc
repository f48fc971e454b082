// Twenty thousand handshakes in which one message is changed on its way: nobody becomes established
// who took the changed one.
#include <algorithm>

#include "gtest/gtest.h"
#include "tests/security/two_sides.h"

namespace tokamak::security {
namespace {

constexpr int kMutatedHandshakes = 20000;

// Returns `genuine`, changed. `others`: messages that were overheard.
Bytes Changed(const Bytes& genuine, const std::vector<const Bytes*>& others, base::Random& random) {
  Bytes bytes = genuine;
  while (bytes == genuine) {
    bytes = genuine;
    switch (random.Below(8)) {
      case 0:  // one bit
        bytes[random.Below(bytes.size())] ^= static_cast<uint8_t>(1 << random.Below(8));
        break;
      case 1:  // some bytes
        for (uint64_t i = 1 + random.Below(8); i > 0; --i)
          bytes[random.Below(bytes.size())] = static_cast<uint8_t>(random.Next());
        break;
      case 2:  // cut
        bytes.resize(random.Below(bytes.size()));
        break;
      case 3:  // longer
        bytes.resize(bytes.size() + 1 + random.Below(kMaxHandshakeMessage), static_cast<uint8_t>(random.Next()));
        break;
      case 4:  // another message
        bytes = *others[random.Below(others.size())];
        break;
      case 5: {  // the beginning of another, and the end of this one
        const Bytes& other = *others[random.Below(others.size())];
        std::copy_n(other.begin(), random.Below(std::min(other.size(), bytes.size()) + 1), bytes.begin());
        break;
      }
      case 6:  // noise
        bytes = Draw(random, random.Below(2 * bytes.size()));
        break;
      case 7: {  // two bytes that changed places
        std::swap(bytes[random.Below(bytes.size())], bytes[random.Below(bytes.size())]);
        break;
      }
    }
  }
  return bytes;
}

TEST(HandshakeMutationsTest, AChangedMessageIsNeverTaken) {
  base::Random random(20261129);
  SideOptions options;
  TwoSides overheard(1, options, options);
  ASSERT_TRUE(overheard.Run());
  // Sides with the same seed say the same, so what each should have heard is known.
  TwoSides genuine(2, options, options);
  ASSERT_TRUE(genuine.Run());
  int refused[3] = {};
  for (int i = 0; i < kMutatedHandshakes; ++i) {
    TwoSides sides(2, options, options);
    const uint64_t which = random.Below(3);
    const std::vector<const Bytes*> others = {&overheard.first, &overheard.second, &overheard.confirming,
                                              &genuine.first,   &genuine.second,   &genuine.confirming};
    HandshakeActions actions;
    if (which == 1) {
      actions = sides.initiator->OnMessage(Changed(genuine.second, others, random));
      ASSERT_NE(sides.initiator->phase(), HandshakePhase::kEstablished) << "handshake " << i;
    } else {
      if (which == 2) sides.responder->OnMessage(genuine.first);
      actions = sides.responder->OnMessage(Changed(which == 0 ? genuine.first : genuine.confirming, others, random));
      ASSERT_NE(sides.responder->phase(), HandshakePhase::kEstablished) << "handshake " << i;
      // An earlier first message is the one change that is answered, and its sender cannot confirm.
      if (!actions.end) actions = sides.responder->OnMessage(*others[random.Below(others.size())]);
    }
    ASSERT_TRUE(actions.end && !actions.end->ok()) << "handshake " << i;
    ASSERT_TRUE(actions.send.empty()) << "handshake " << i;
    ++refused[which];
  }
  for (const int count : refused) EXPECT_GT(count, kMutatedHandshakes / 4);
}

}  // namespace
}  // namespace tokamak::security
