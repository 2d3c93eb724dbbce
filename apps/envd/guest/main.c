/* Entry point: one static program with several subcommands. */
#include "guest.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
  const char *name = slash ? slash + 1 : argc > 0 ? argv[0] : "";
  if (strcmp(name, "sudo") == 0) return sudo_main(argc, argv);

  const char *face = argc > 1 ? argv[1] : "";
  if (strcmp(face, "init") == 0) return init_main(argc - 1, argv + 1);
  if (strcmp(face, "spawner") == 0) return spawner_main(argc - 1, argv + 1);
  if (strcmp(face, "exec") == 0) return exec_main(argc - 1, argv + 1);
  if (strcmp(face, "fifos") == 0) return fifos_main(argc - 1, argv + 1);
  if (strcmp(face, "sudo") == 0) return sudo_main(argc - 1, argv + 1);
  if (strcmp(face, "rootfs") == 0) return rootfs_main(argc - 1, argv + 1);
  if (strcmp(face, "gvisor-start") == 0) return gvisor_start_main(argc - 1, argv + 1);
  if (strcmp(face, "gvisor-network") == 0) return gvisor_network_main(argc - 1, argv + 1);
  if (strcmp(face, "gvisor-root") == 0) return gvisor_root_main(argc - 1, argv + 1);

  fputs("usage: guest init [--sudo] -- ARGV...\n"
        "       guest spawner [--tied]\n"
        "       guest exec --uid N --gid N [--groups N,N] [--cwd DIR] [--oom N] [--ctty] -- ARGV...\n"
        "       guest fifos PREFIX COUNT\n"
        "       guest sudo ...\n"
        "       guest rootfs IMAGE DISK ROOTFS LAYERS SHIFT HOSTNAME RESOLVER\n"
        "       guest gvisor-start ARGV...\n"
        "       guest gvisor-network NAMESPACE LINK SOCKET CALL\n"
        "       guest gvisor-root PID OLD NEW [SOURCE DESTINATION]...\n",
        stderr);
  return 2;
}
