#include "tests/directory/conformance/fixture.h"

namespace tokamak::directory {
namespace {

const BackendCase kLocal{"Local", MakeLocalBackend};
const BackendCase kRemote{"Remote", MakeRemoteBackend};

INSTANTIATE_TEST_SUITE_P(Virtual, DirectoryConformance, testing::Values(kLocal, kRemote), BackendCaseName);
INSTANTIATE_TEST_SUITE_P(Virtual, DirectoryOutageConformance, testing::Values(kRemote), BackendCaseName);

}  // namespace
}  // namespace tokamak::directory
