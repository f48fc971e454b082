// Memory in large pages, for programs that simulate large networks.
//
// A network of a thousand hosts is looked at all over the place: each event wants a few bytes of
// another switch, frame or NIC. With pages of 4 KiB a third of the time goes by while the processor
// looks up where these are.
#pragma once

namespace tokamak::sim {

// Asks the system to back what is allocated from now on by large pages. Does nothing where it has
// none; nothing but speed depends on it. At the beginning of main.
void PreferLargePages();

}  // namespace tokamak::sim
