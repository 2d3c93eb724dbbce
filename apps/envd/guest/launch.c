/* The last steps before a command runs: an identity, a path, an exec. */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Decimal only. The highest value is refused: setresuid takes it for "leave as it is". */
int parse_id(const char *text, uint32_t *id) {
  uint64_t value = 0;
  if (*text == '\0') return -1;
  for (; *text; text++) {
    if (*text < '0' || *text > '9') return -1;
    value = value * 10 + (uint64_t)(*text - '0');
    if (value >= UINT32_MAX) return -1;
  }
  *id = (uint32_t)value;
  return 0;
}

/* Without this, a later descriptor could land on 0, 1 or 2 and be taken for standard output. */
void fill_stdio(void) {
  for (int fd = open("/dev/null", O_RDWR); fd >= 0; fd = open("/dev/null", O_RDWR))
    if (fd > 2) {
      close(fd);
      return;
    }
}

/* The kernel's own calls: those of the library see to other threads first, of which there are none, at a dozen calls each. */
int become(const struct identity *who) {
  if (syscall(SYS_setgroups, (size_t)who->group_count, who->groups) < 0) return -1;
  if (syscall(SYS_setresgid, who->gid, who->gid, who->gid) < 0) return -1;
  return (int)syscall(SYS_setresuid, who->uid, who->uid, who->uid);
}

static int check_command(const char *path) {
  struct stat info;
  if (stat(path, &info) < 0) return errno == EACCES ? EACCES : ENOENT;
  if (!S_ISREG(info.st_mode) || access(path, X_OK) < 0) return EACCES;
  return 0;
}

/* Returns 0, or ENOENT or EACCES (there, but not a program one may run). */
int find_command(const char *name, const char *path, char found[MAX_PATH]) {
  size_t name_size = strlen(name);
  if (name_size == 0 || name_size >= MAX_PATH) return ENOENT;
  if (strchr(name, '/')) {
    memcpy(found, name, name_size + 1);
    return check_command(found);
  }
  int result = ENOENT;
  for (const char *dir = path; dir;) {
    const char *colon = strchr(dir, ':');
    size_t dir_size = colon ? (size_t)(colon - dir) : strlen(dir);
    if (dir_size + name_size + 2 <= MAX_PATH) {
      memcpy(found, dir_size ? dir : ".", dir_size ? dir_size : 1);
      size_t at = dir_size ? dir_size : 1;
      found[at] = '/';
      memcpy(found + at + 1, name, name_size + 1);
      int checked = check_command(found);
      if (checked == 0) return 0;
      /* A folder that may not be searched holds nothing, as far as one can tell. */
      if (checked == EACCES && access(found, F_OK) == 0) result = EACCES;
    }
    dir = colon ? colon + 1 : NULL;
  }
  return result;
}

/* Returns only on failure, with errno set. A text without a #! line goes to sh, as execvp does, and then
   takes the place before argv, which the caller leaves free: memory that is borrowed has no other to spare. */
void run_found(char *found, char **argv, char **env) {
  execve(found, argv, env);
  if (errno != ENOEXEC) return;
  static char shell[] = "/bin/sh";
  argv[-1] = shell;
  argv[0] = found;
  execve(shell, argv - 1, env);
}
