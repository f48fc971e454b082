// Memory in large pages, for programs that simulate large networks.
//
// Events of a thousand hosts touch memory everywhere: with 4 KiB pages a third of the time goes to
// TLB misses.
#pragma once

namespace tokamak::sim {

// Asks for large pages from now on; without them only slower. Call first in main.
void PreferLargePages();

}  // namespace tokamak::sim
