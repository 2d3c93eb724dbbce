/*
 * `guest gvisor-start`, used on the host: makes programs in gVisor start faster.
 *
 * The command that gvisor-start executes cannot enable CPUID faulting. gVisor enables it where the
 * processor supports it, and works without. With it, each of the dozens of CPUID instructions that a C
 * library executes before main() traps into gVisor's kernel.
 *
 * The programs in a sandbox are host processes, which hand each system call over to gVisor's kernel
 * and spin for a while to wait for a quick result. So they should run at a lower priority than the
 * kernel: gvisor-start lowers the priority, and the node raises the kernel's threads to its own priority
 * once the sandbox runs.
 */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STEPS_BELOW = 10 };

#ifdef SYS_arch_prctl
/* musl has no kernel headers; these are from linux/filter.h, linux/seccomp.h and asm/prctl.h. */
struct instruction {
  uint16_t code;
  uint8_t if_true, if_false;
  uint32_t value;
};
struct program {
  unsigned short length;
  const struct instruction *instructions;
};
enum { LOAD = 0x20, JUMP_IF_EQUAL = 0x15, RETURN = 0x06 };
enum { AT_NUMBER = 0, AT_ARCHITECTURE = 4, AT_FIRST_ARGUMENT = 16 };
enum { SET_FILTER = 1, ARCH_SET_CPUID = 0x1012, ONLY_64_BIT = 0xC000003E };
enum { FAIL = 0x00050000, ALLOW = 0x7fff0000 };

static int keep_cpuid(void) {
  static const struct instruction instructions[] = {
      {LOAD, 0, 0, AT_ARCHITECTURE},   {JUMP_IF_EQUAL, 0, 5, ONLY_64_BIT},
      {LOAD, 0, 0, AT_NUMBER},         {JUMP_IF_EQUAL, 0, 3, SYS_arch_prctl},
      {LOAD, 0, 0, AT_FIRST_ARGUMENT}, {JUMP_IF_EQUAL, 0, 1, ARCH_SET_CPUID},
      {RETURN, 0, 0, FAIL | ENODEV},   {RETURN, 0, 0, ALLOW},
  };
  struct program program = {LENGTH(instructions), instructions};
  return (int)syscall(SYS_seccomp, SET_FILTER, 0, &program);
}
#else
static int keep_cpuid(void) { return 0; }
#endif

int gvisor_start_main(int argc, char **argv) {
  if (argc < 2) {
    fputs("gvisor-start: no command\n", stderr);
    return 126;
  }
  /* A failure is not fatal: gVisor is only slower. */
  if (keep_cpuid() < 0) perror("gvisor-start");
  errno = 0;
  if (nice(STEPS_BELOW) == -1 && errno) perror("gvisor-start");
  const char *path = getenv("PATH");
  char found[MAX_PATH];
  errno = find_command(argv[1], path ? path : SECURE_PATH, found);
  if (errno == 0) execv(found, argv + 1);
  fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
  return 127;
}
