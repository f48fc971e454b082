#include "tests/directory/conformance/fixture.h"

namespace tokamak::directory {
namespace {

const BackendCase kLocal{"Local", MakeLocalBackend};
const BackendCase kRemote{"Remote", MakeRemoteBackend};
const BackendCase kTransport{"RemoteOverTransport", MakeTransportBackend};

INSTANTIATE_TEST_SUITE_P(Virtual, DirectoryConformance, testing::Values(kLocal, kRemote, kTransport), BackendCaseName);
INSTANTIATE_TEST_SUITE_P(Virtual, DirectoryOutageConformance, testing::Values(kRemote, kTransport), BackendCaseName);

}  // namespace
}  // namespace tokamak::directory
