/*
 * guest exec: switches to a user and executes the command in the same process, so the pid that envd
 * started stays the pid of the command. It trusts its caller (envd, root), but no file on disk.
 */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOT_RUNNABLE = 126, NOT_FOUND = 127, MAX_MESSAGE = 1024 };

extern char **environ;

/* Avoids stderr: a child killed during the write would leave its buffer inconsistent in the memory
   shared with the spawner. The text is truncated to fit into any pipe, because the pipe is read
   only after the child is done. */
static int fail(const char *what) {
  dprintf(STDERR_FILENO, "%.*s: %s\n", MAX_MESSAGE, what, strerror(errno));
  return NOT_RUNNABLE;
}

static int parse_groups(char *text, struct identity *who) {
  for (char *item = strtok(text, ","); item; item = strtok(NULL, ",")) {
    if (who->group_count == MAX_GROUPS) return -1;
    if (parse_id(item, &who->groups[who->group_count++]) < 0) return -1;
  }
  return 0;
}

static void set_oom_score(const char *score) {
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  ssize_t written = write(fd, score, strlen(score));
  (void)written;
  close(fd);
}

/* Opening /dev/stdout reopens the pipe or terminal, which only its owner may do. */
static void own_stdio(uid_t uid) {
  for (int fd = 0; fd <= 2; fd++) {
    struct stat info;
    if (fstat(fd, &info) == 0 && (S_ISFIFO(info.st_mode) || isatty(fd)) &&
        fchown(fd, uid, (gid_t)-1) < 0)
      continue;
  }
}

static int take_terminal(void) {
  if (setsid() < 0 && errno != EPERM) return -1;
  return ioctl(STDIN_FILENO, TIOCSCTTY, 0);
}

int exec_main(int argc, char **argv) {
  reset_signals();
  return exec_command(argc, argv);
}

/* Expects default signal handling. May run many times in the memory of the spawner, one after the other. */
int exec_command(int argc, char **argv) {
  static const struct option known[] = {
      {"uid", required_argument, NULL, 'u'}, {"gid", required_argument, NULL, 'g'},
      {"groups", required_argument, NULL, 'G'}, {"cwd", required_argument, NULL, 'c'},
      {"oom", required_argument, NULL, 'o'}, {"ctty", no_argument, NULL, 't'}, {0}};
  struct identity who = {.uid = (uid_t)-1, .gid = (gid_t)-1};
  const char *directory = NULL, *oom = NULL;
  int terminal = 0, bad = 0;
  optind = 0;
  for (int option; (option = getopt_long(argc, argv, "+", known, NULL)) != -1;) {
    if (option == 'u') bad |= parse_id(optarg, &who.uid);
    else if (option == 'g') bad |= parse_id(optarg, &who.gid);
    else if (option == 'G') bad |= parse_groups(optarg, &who);
    else if (option == 'c') directory = optarg;
    else if (option == 'o') oom = optarg;
    else if (option == 't') terminal = 1;
    else bad = -1;
  }
  if (bad || who.uid == (uid_t)-1 || who.gid == (gid_t)-1 || optind >= argc) {
    dprintf(STDERR_FILENO, "exec: bad arguments\n");
    return NOT_RUNNABLE;
  }

  if (oom) set_oom_score(oom);
  own_stdio(who.uid);
  if (terminal && take_terminal() < 0) return fail("terminal");
  if (become(&who) < 0) return fail("identity");
  if (directory && chdir(directory) < 0) return fail(directory);

  const char *name = argv[optind], *path = getenv("PATH");
  char found[MAX_PATH];
  int missing = find_command(name, path ? path : SECURE_PATH, found);
  if (missing == ENOENT) {
    dprintf(STDERR_FILENO, "%.*s: command not found\n", MAX_MESSAGE, name);
    return NOT_FOUND;
  }
  errno = missing;
  if (!missing) run_found(found, argv + optind, environ);
  return fail(name);
}
