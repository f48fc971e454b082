#include "lib/daemon/flags/help_format.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"

namespace tokamak::daemon {
namespace {

const std::string kFill(30, ' ');

TEST(HelpFormatTest, DescriptionsAreWrappedFromColumn30On) {
  EXPECT_EQ(
      WrapHelp("  --memory SIZE               of the store, which is in shared memory, such as 512MiB or 16GiB"),
      "  --memory SIZE               of the store, which is in shared memory, such as\n" + kFill + "512MiB or 16GiB");
  EXPECT_EQ(WrapHelp(kFill + "of the store, which is in shared memory, such as 512MiB or 16GiB"),
            kFill + "of the store, which is in shared memory, such as\n" + kFill + "512MiB or 16GiB");
}

TEST(HelpFormatTest, LinesThatFitAndCommandsStayUnchanged) {
  const std::string text =
      "Example:\n  tokd --listen 127.0.0.1:7000 --device soft:udp@127.0.0.1 --memory 512MiB --socket /tmp/node1.sock "
      "&\n\n";
  EXPECT_EQ(WrapHelp(text), text);
}

TEST(HelpFormatTest, AParagraphIsWrappedBetweenWords) {
  EXPECT_EQ(WrapHelp(std::string(79, 'a') + " b c"), std::string(79, 'a') + "\nb c");
  EXPECT_EQ(WrapHelp(std::string(90, 'a') + " b"), std::string(90, 'a') + "\nb");
  EXPECT_EQ(WrapHelp("a\n\n\nb"), "a\n\nb");
  EXPECT_EQ(WrapHelp(""), "");
}

TEST(HelpFormatTest, HelpOfACommandIsFormattedAsWell) {
  CLI::App app("about", "program");
  app.formatter(std::make_shared<HelpFormat>());
  std::string value;
  app.add_subcommand("go", "goes")->add_option("--far", value, std::string(40, 'a') + " " + std::string(40, 'b'));
  const std::string help = app.get_subcommand("go")->help();
  EXPECT_NE(help.find(std::string(40, 'a') + "\n" + kFill + std::string(40, 'b')), std::string::npos) << help;
}

}  // namespace
}  // namespace tokamak::daemon
