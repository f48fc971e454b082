// Which interrupts go where, by what a made tree of /proc and /sys tells.
#include "lib/verbs/ibv/posting/vectors.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/short_folder.h"

namespace tokamak::verbs::ibv {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class VectorsTest : public testing::Test {
 protected:
  VectorsTest() {
    Put("proc/interrupts",
        "           CPU0       CPU1\n"
        "   9:          0          0   IO-APIC    9-fasteoi   acpi\n"
        "  92:          0          3   IR-PCI-MSI 1048576-edge      mlx5_async0@pci:0000:3b:00.0\n"
        "  93:          0         17   IR-PCI-MSI 1048577-edge      mlx5_comp0@pci:0000:3b:00.0\n"
        "  94:          5          0   IR-PCI-MSI 1048578-edge      mlx5_comp1@pci:0000:3b:00.0\n"
        " 103:          5          0   IR-PCI-MSI 1048577-edge      mlx5_comp0@pci:0000:af:00.0\n"
        " NMI:          0          0   Non-maskable interrupts\n");
    for (const char* of_one : {"92", "93", "94"}) Put(MsiFolder("mlx5_0") + of_one, "msix\n");
    Put(MsiFolder("mlx5_1") + "103", "msix\n");
    Put("proc/irq/93/effective_affinity_list", "2\n");
    Put("proc/irq/93/smp_affinity_list", "0-7\n");
    Put("proc/irq/94/smp_affinity_list", "4-5\n");
    Put("proc/irq/103/effective_affinity_list", "9\n");
  }

  static std::string MsiFolder(const std::string& device) {
    return "sys/class/infiniband/" + device + "/device/msi_irqs/";
  }
  void Put(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_.Path(path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  const testing_support::ShortFolder root_;
};

TEST_F(VectorsTest, EachVectorHasTheProcessorsOfItsInterrupt) {
  EXPECT_THAT(VectorProcessors(root_.path(), "mlx5_0", 2), ElementsAre(ElementsAre(2), ElementsAre(4, 5)));
}

TEST_F(VectorsTest, InterruptsOfAnotherDeviceAreIgnored) {
  EXPECT_THAT(VectorProcessors(root_.path(), "mlx5_1", 2), ElementsAre(ElementsAre(9), IsEmpty()));
}

TEST_F(VectorsTest, InterruptsBeyondTheVectorsAreSkipped) {
  EXPECT_THAT(VectorProcessors(root_.path(), "mlx5_0", 1), ElementsAre(ElementsAre(2)));
}

TEST_F(VectorsTest, UnknownInterruptsGiveNoVectors) {
  EXPECT_THAT(VectorProcessors(root_.path(), "rxe0", 1), IsEmpty());
  EXPECT_THAT(VectorProcessors(root_.Path("nowhere"), "mlx5_0", 2), IsEmpty());
}

TEST(VectorsForTest, ALoopTakesVectorsThatInterruptWhereItRuns) {
  EXPECT_THAT(VectorsFor({{0}, {1}, {2, 3}, {}}, {1, 3}, 4), ElementsAre(1, 2));
}

TEST(VectorsForTest, AllVectorsServeIfNoneMatchesOrNothingIsKnown) {
  EXPECT_THAT(VectorsFor({{0}, {1}}, {6, 7}, 2), ElementsAre(0, 1));
  EXPECT_THAT(VectorsFor({}, {0, 1}, 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(VectorsFor({}, {0}, 0), ElementsAre(0)) << "a provider that counts none has one";
}

}  // namespace
}  // namespace tokamak::verbs::ibv
