/* A program that lives through restarts of its daemon: survivor SOCKET. Whenever it reads a line,
 * it puts the object of that name and gets it, and says what came of it; and whether what it got
 * first of all is readable no more. */
#include <stdio.h>
#include <string.h>

#include "tokamak/tokamak.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  tokamak_client_options options = {0};
  options.size = sizeof(options);
  options.reconnect = 1;
  tokamak_client* client;
  tokamak_buffer *view, *got;
  const tokamak_id first = tokamak_id_of_name("first");
  if (tokamak_connect(argv[1], &options, &client) != TOKAMAK_OK) return 1;
  if (tokamak_put(client, &first, "kept", 4, NULL, 0, NULL) != TOKAMAK_OK) return 1;
  if (tokamak_get(client, &first, 60 * TOKAMAK_SECOND, &view) != TOKAMAK_OK) return 1;
  for (char name[64]; fgets(name, sizeof(name), stdin) != NULL;) {
    const tokamak_id id = tokamak_id_of_name(name);
    tokamak_code code = tokamak_put(client, &id, "kept", 4, NULL, 0, NULL);
    if (code == TOKAMAK_OK) code = tokamak_get(client, &id, 60 * TOKAMAK_SECOND, &got);
    const char* why = code == TOKAMAK_OK ? "" : tokamak_error();
    if (code == TOKAMAK_OK) tokamak_buffer_release(got);
    const int kept = memcmp(tokamak_buffer_data(view), "kept", 4) == 0;
    printf("%s%s%s%s\n", tokamak_code_name(code), *why ? ": " : "", why, kept ? "" : ", and what was kept is not");
    fflush(stdout);
  }
  tokamak_buffer_release(view);
  tokamak_disconnect(client);
  return 0;
}
