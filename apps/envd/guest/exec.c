/*
 * guest exec: takes on a user's identity and becomes the command, so that the pid envd started
 * is the pid of the command. It trusts its caller (envd, root) and nothing it finds on disk.
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

enum { NOT_RUNNABLE = 126, NOT_FOUND = 127, MAX_TOLD = 1024 };

extern char **environ;

/* Not by stderr: who is killed while it writes would leave it broken in memory that is borrowed. And
   cut, so that it fits into any pipe: nobody reads from it before we are done. */
static int fail(const char *what) {
  dprintf(STDERR_FILENO, "%.*s: %s\n", MAX_TOLD, what, strerror(errno));
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

/* Opening /dev/stdout opens the pipe or terminal anew, which only its owner may do. */
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

/* Expects signals at their defaults. May run in borrowed memory, once after the other. */
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
    dprintf(STDERR_FILENO, "%.*s: command not found\n", MAX_TOLD, name);
    return NOT_FOUND;
  }
  errno = missing;
  if (!missing) run_found(found, argv + optind, environ);
  return fail(name);
}
