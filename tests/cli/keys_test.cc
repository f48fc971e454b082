#include "lib/cli/common/keys.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "lib/os/file_descriptor.h"

namespace tokamak::cli {
namespace {

using Clock = std::chrono::steady_clock;

TEST(KeysTest, SequencesOfTerminalsAreKeys) {
  std::string typed = "\033[Aj\033[6~x\033OHGq";
  std::vector<Key> keys;
  while (!typed.empty()) keys.push_back(Keys::Take(typed));
  EXPECT_EQ(keys,
            (std::vector<Key>{Key::kUp, Key::kDown, Key::kPageDown, Key::kNone, Key::kFirst, Key::kLast, Key::kQuit}));
}

TEST(KeysTest, NoPartOfAnUnknownSequenceIsTakenForAKey) {
  std::string typed = "\033[200~q";
  EXPECT_EQ(Keys::Take(typed), Key::kNone);
  EXPECT_EQ(typed, "");
}

class TerminalTest : public testing::Test {
 protected:
  TerminalTest() : person_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    if (!person_.valid() || grantpt(person_.get()) != 0 || unlockpt(person_.get()) != 0) return;
    terminal_ = os::FileDescriptor(open(ptsname(person_.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  }
  termios Mode() const {
    termios mode{};
    EXPECT_EQ(tcgetattr(terminal_.get(), &mode), 0);
    return mode;
  }

  const os::FileDescriptor person_;
  os::FileDescriptor terminal_;
};

TEST_F(TerminalTest, AKeyIsReadAsItIsTypedAndTheModeIsRestored) {
  ASSERT_TRUE(terminal_.valid());
  const tcflag_t before = Mode().c_lflag;
  Keys keys(terminal_.get());
  ASSERT_TRUE(keys.Open().ok());
  EXPECT_EQ(Mode().c_lflag & (ICANON | ECHO), 0u);
  EXPECT_NE(Mode().c_lflag & ISIG, 0u) << "Ctrl-C stays a signal";
  ASSERT_EQ(write(person_.get(), "kq", 2), 2);
  const Clock::time_point patience = Clock::now() + std::chrono::minutes(1);
  EXPECT_EQ(keys.Next(patience), Key::kUp);
  EXPECT_EQ(keys.Next(patience), Key::kQuit);
  EXPECT_EQ(keys.Next(Clock::now()), Key::kNone) << "nothing more was typed";
  EXPECT_TRUE(keys.Close().ok());
  EXPECT_EQ(Mode().c_lflag, before);
}

TEST(KeysTest, AMissingTerminalIsReported) {
  Keys keys(-1);
  EXPECT_FALSE(keys.Open().ok());
}

}  // namespace
}  // namespace tokamak::cli
