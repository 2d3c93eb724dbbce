/*
 * guest gvisor-root PID OLD NEW [SOURCE DESTINATION]..., used on the host: gives a gVisor sandbox that was
 * created ahead its root file system, before anything is restored into it.
 *
 * PID is the sandbox's file server (gofer). It has a mount namespace of its own, is confined to the
 * folder OLD, and opens its root when the sandbox starts. pivot_root in that namespace replaces the root
 * of every process that has the old one. The SOURCEs are mounted below the new root first.
 *
 * Threats: NEW holds the files of a sandbox, so destinations are resolved inside of it only. A number
 * that now belongs to another process is noticed, because that process has another root than OLD.
 */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* musl has no kernel headers; these are from asm-generic/unistd.h, linux/mount.h and linux/openat2.h. */
enum { OPEN_TREE = 428, MOVE_MOUNT = 429, OPENAT2 = 437 };
enum { TREE_CLONE = 1, FROM_DESCRIPTOR = 0x4, TO_DESCRIPTOR = 0x40 };
enum { NO_MAGIC_LINKS = 0x02, IN_ROOT = 0x10 };
struct how {
  uint64_t flags, mode, resolve;
};

enum { MAX_BINDS = 8 };

static int fail(const char *what) {
  fprintf(stderr, "gvisor-root: %s: %s\n", what, strerror(errno));
  return 1;
}

static int clone_mount(const char *path) {
  return (int)syscall(OPEN_TREE, AT_FDCWD, path, TREE_CLONE | O_CLOEXEC);
}

static int attach(int mount, int at) {
  return (int)syscall(MOVE_MOUNT, mount, "", at, "", FROM_DESCRIPTOR | TO_DESCRIPTOR);
}

static int open_inside(int root, const char *path) {
  struct how how = {O_PATH | O_CLOEXEC, 0, IN_ROOT | NO_MAGIC_LINKS};
  return (int)syscall(OPENAT2, root, path, &how, sizeof how);
}

/* Opens the root of a process, if that is the folder `expected`. */
static int open_root(uint32_t process, const char *expected) {
  char path[64];
  struct stat wanted, found;
  snprintf(path, sizeof path, "/proc/%u/root", process);
  int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0 || fstat(root, &found) < 0 || stat(expected, &wanted) < 0) return -1;
  if (found.st_dev == wanted.st_dev && found.st_ino == wanted.st_ino) return root;
  errno = ESRCH;
  return -1;
}

int gvisor_root_main(int argc, char **argv) {
  uint32_t process;
  int binds[MAX_BINDS], count = (argc - 4) / 2;
  if (argc < 4 || argc % 2 || count > MAX_BINDS || parse_id(argv[1], &process) < 0) {
    fputs("gvisor-root: no process, or no folders\n", stderr);
    return 2;
  }
  char path[64];
  snprintf(path, sizeof path, "/proc/%u/ns/mnt", process);
  int namespace = open(path, O_RDONLY | O_CLOEXEC);
  if (namespace < 0) return fail(path);
  int old = open_root(process, argv[2]);
  if (old < 0) return fail(argv[2]);
  int new = clone_mount(argv[3]);
  if (new < 0) return fail(argv[3]);
  for (int i = 0; i < count; i++)
    if ((binds[i] = clone_mount(argv[4 + 2 * i])) < 0) return fail(argv[4 + 2 * i]);

  if (setns(namespace, CLONE_NEWNS) < 0) return fail("setns");
  if (fchdir(old) < 0 || chroot(".") < 0) return fail("chroot");
  if (attach(new, old) < 0) return fail("mount");
  for (int i = 0; i < count; i++) {
    int target = open_inside(new, argv[5 + 2 * i]);
    if (target < 0 || attach(binds[i], target) < 0) return fail(argv[5 + 2 * i]);
    close(target);
  }
  if (fchdir(new) < 0 || syscall(SYS_pivot_root, ".", ".") < 0) return fail("pivot_root");
  if (fchdir(old) < 0 || umount2(".", MNT_DETACH) < 0) return fail("umount");
  return 0;
}
