/*
 * guest host-cpuid: becomes a command that cannot have the CPUID instruction trapped. gVisor asks for that trap where
 * the processor has it, and does without where it has not; then each of the dozens of times that a C library looks at the
 * processor before main() goes to gVisor's kernel and back, which is a third of what a small program takes to start.
 */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef SYS_arch_prctl
/* The library has no headers of the kernel's; these are linux/filter.h, linux/seccomp.h and asm/prctl.h. */
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

int host_cpuid_main(int argc, char **argv) {
  if (argc < 2) {
    fputs("host-cpuid: no command\n", stderr);
    return 126;
  }
  /* It is only slower with the trap. */
  if (keep_cpuid() < 0) perror("host-cpuid");
  execvp(argv[1], argv + 1);
  fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
  return 127;
}
