/*
 * guest rootfs IMAGE DISK ROOTFS LAYERS SHIFT HOSTNAME RESOLVER, used on the host: mounts the disk IMAGE of a
 * sandbox on the folder DISK, and LAYERS with the files of the disk above them on ROOTFS. A disk that is used
 * for the first time gets its folders and the files for HOSTNAME and RESOLVER (content of resolv.conf),
 * with owners shifted by SHIFT.
 *
 * mount(8) takes several times as long: it compares the image with all loop devices and probes its type.
 *
 * Threats: the sandbox controls the content of a disk that was used before. Nothing is written there, and
 * `upper` is only looked at, never followed.
 */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* musl has no kernel headers; these are from linux/loop.h. */
enum { GET_FREE = 0x4C82, CONFIGURE = 0x4C0A, AUTO_DETACH = 4 };
struct loop_info {
  uint64_t device, inode, rdevice, offset, size_limit;
  uint32_t number, encrypt_type, encrypt_key_size, flags;
  uint8_t file_name[64], crypt_name[64], encrypt_key[32];
  uint64_t init[2];
};
struct loop_config {
  uint32_t fd, block_size;
  struct loop_info info;
  uint64_t reserved[8];
};

enum { ATTEMPTS = 64, MAX_OPTIONS = 4096, LOCK_WAITS = 6000, WAIT_NS = 5000000 };

static int fail(const char *what) {
  fprintf(stderr, "rootfs: %s: %s\n", what, strerror(errno));
  return 1;
}

/*
 * Waits at most 30 seconds until no loop device uses the image: a lazy unmount ends when the last process of
 * the sandbox is gone. Two file systems on one image would destroy it. The loop device keeps the open file,
 * and with it the lock.
 */
static int lock_image(int file) {
  static const struct timespec interval = {.tv_nsec = WAIT_NS};
  for (int i = 0; flock(file, LOCK_EX | LOCK_NB) < 0; i++) {
    if (errno != EWOULDBLOCK || i == LOCK_WAITS) return -1;
    nanosleep(&interval, NULL);
  }
  return 0;
}

/* Opens a loop device on the image. The device goes when its last user is gone. */
static int attach(const char *image, char device[32]) {
  int file = open(image, O_RDWR | O_CLOEXEC), control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
  if (file < 0 || control < 0 || lock_image(file) < 0) return -1;
  struct loop_config config = {.fd = (uint32_t)file, .info.flags = AUTO_DETACH};
  snprintf((char *)config.info.file_name, sizeof config.info.file_name, "%s", image);
  for (int i = 0; i < ATTEMPTS; i++) {
    int number = ioctl(control, GET_FREE);
    if (number < 0) return -1;
    snprintf(device, 32, "/dev/loop%d", number);
    int loop = open(device, O_RDWR | O_CLOEXEC);
    if (loop < 0) return -1;
    if (ioctl(loop, CONFIGURE, &config) == 0) return loop;
    close(loop);
    /* Another process was faster. */
    if (errno != EBUSY) return -1;
  }
  return -1;
}

static int mount_disk(const char *image, const char *disk) {
  char device[32];
  int loop = attach(image, device);
  if (loop < 0) return -1;
  int result = mount(device, disk, "ext4", MS_NODEV | MS_NOATIME, NULL), problem = errno;
  close(loop);
  errno = problem;
  return result;
}

static int write_file(const char *path, const char *content) {
  int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  size_t length = strlen(content);
  if (file < 0 || write(file, content, length) != (ssize_t)length) return -1;
  return close(file);
}

/* gVisor puts a file system in memory over a /tmp that is empty; this one is on the disk. */
static int fill_disk(const char *hostname, const char *resolver) {
  char line[512], hosts[1024];
  snprintf(line, sizeof line, "%s\n", hostname);
  snprintf(hosts, sizeof hosts,
           "127.0.0.1 localhost\n127.0.1.1 %s\n::1 localhost ip6-localhost\n", hostname);
  umask(0);
  int failed = mkdir("work", 0755) < 0 || mkdir("upper", 0755) < 0 || mkdir("upper/etc", 0755) < 0 ||
               mkdir("upper/tmp", 01777) < 0 || mkdir("upper/tmp/.X11-unix", 01777) < 0 ||
               write_file("upper/etc/hostname", line) < 0 || write_file("upper/etc/hosts", hosts) < 0 ||
               write_file("upper/etc/resolv.conf", resolver) < 0;
  return failed ? -1 : 0;
}

static int shift_owners(uint32_t shift) {
  static const char *const made[] = {
      "work",      "upper",         "upper/etc",          "upper/etc/hostname", "upper/etc/hosts",
      "upper/tmp", "upper/tmp/.X11-unix", "upper/etc/resolv.conf"};
  for (size_t i = 0; shift && i < LENGTH(made); i++)
    if (lchown(made[i], shift, shift) < 0) return -1;
  return 0;
}

int rootfs_main(int argc, char **argv) {
  uint32_t shift;
  char options[MAX_OPTIONS];
  if (argc != 8 || parse_id(argv[5], &shift) < 0) {
    fputs("rootfs: no image, folders, layers, shift, hostname or resolver\n", stderr);
    return 2;
  }
  int length = snprintf(options, sizeof options, "lowerdir=%s,upperdir=upper,workdir=work", argv[4]);
  if (length >= (int)sizeof options) {
    errno = E2BIG;
    return fail("layers");
  }
  if (mount_disk(argv[1], argv[2]) < 0) return fail(argv[1]);
  struct stat found;
  if (chdir(argv[2]) < 0) return fail(argv[2]);
  if (lstat("upper", &found) < 0) {
    if (errno != ENOENT) return fail("upper");
    if (fill_disk(argv[6], argv[7]) < 0 || shift_owners(shift) < 0) return fail("new disk");
  }
  if (mount("overlay", argv[3], "overlay", MS_NODEV, options) < 0) return fail(argv[3]);
  return 0;
}
