/* The last steps before a command runs: switch user, find the program, execute it. */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Accepts decimal numbers only, and rejects the highest value: setresuid reads it as "no change". */
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

/* Opens descriptors 0 to 2, so that no later descriptor is mistaken for standard input or output. */
void fill_stdio(void) {
  for (int fd = open("/dev/null", O_RDWR); fd >= 0; fd = open("/dev/null", O_RDWR))
    if (fd > 2) {
      close(fd);
      return;
    }
}

/* Uses raw system calls: the library's versions synchronize other threads first, a dozen more calls
   each, and there are none. */
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

/* Returns 0, ENOENT, or EACCES if the file exists but is not executable. */
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
      /* A folder that may not be searched counts as empty. */
      if (checked == EACCES && access(found, F_OK) == 0) result = EACCES;
    }
    dir = colon ? colon + 1 : NULL;
  }
  return result;
}

/* Returns only on failure, with errno set. A text file without a #! line is run by sh, as execvp does.
   sh then takes the slot before argv, which callers reserve, because shared memory allows no
   allocation here. */
void run_found(char *found, char **argv, char **env) {
  execve(found, argv, env);
  if (errno != ENOEXEC) return;
  static char shell[] = "/bin/sh";
  argv[-1] = shell;
  argv[0] = found;
  execve(shell, argv - 1, env);
}
