/*
 * guest fifos PREFIX COUNT: creates the named pipes PREFIX0, PREFIX1, ... for root only, all of them
 * or none. envd keeps a pool of pipes, because Node.js cannot create one.
 */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int fifos_main(int argc, char **argv) {
  uint32_t count = 0;
  if (argc != 3 || parse_id(argv[2], &count) < 0 || count > MAX_FIFOS) {
    dprintf(STDERR_FILENO, "fifos: takes a prefix and a count of at most %d\n", MAX_FIFOS);
    return 2;
  }
  char path[MAX_PATH];
  for (uint32_t made = 0; made < count; made++) {
    int size = snprintf(path, sizeof path, "%s%u", argv[1], made);
    if (size < MAX_PATH && mkfifo(path, 0600) == 0) continue;
    dprintf(STDERR_FILENO, "fifos: %s: %s\n", path, strerror(size < MAX_PATH ? errno : ENAMETOOLONG));
    while (made-- > 0) {
      snprintf(path, sizeof path, "%s%u", argv[1], made);
      unlink(path);
    }
    return 1;
  }
  return 0;
}
