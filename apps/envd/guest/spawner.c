/*
 * guest spawner: starts commands for envd and the node. A fork of a process as large as Node.js costs
 * several times as much, and here the child switches user without an extra exec. Requests arrive on
 * descriptor 0, replies go to 1. It trusts its caller (root) and exits with it. Its processes live on,
 * unless the spawner is tied: then they are killed.
 */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  STDIO = 3,
  MAX_BYTES = 4 * 1024 * 1024,
  OUTPUT_BYTES = 512 * 1024,
  CHILD_STACK_BYTES = 128 * 1024 /* the child needs about 20 KiB, for two paths and dprintf */
};

/* NUL-terminated strings follow: names of the files for stdin, stdout and stderr (empty: /dev/null),
   arguments, variables (none: inherit the spawner's). */
struct spawn_header {
  uint32_t id;
  uint32_t bytes;
  uint32_t args;
  uint32_t vars;
};

enum { SPAWN_STARTED = 1, SPAWN_REFUSED, SPAWN_ENDED };
struct spawn_reply {
  uint32_t kind;
  uint32_t id; /* ID of the request, or of the process that ended */
  uint32_t value; /* the pid, an errno, or a status as in wait(2) */
};

extern char **environ;
static char **own_variables;
/* PID of the spawner if its processes end with it, else 0. */
static pid_t tied_to;

static int read_all(void *data, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t count = read(STDIN_FILENO, (char *)data + done, size - done);
    if (count == 0 || (count < 0 && errno != EINTR)) return -1;
    if (count > 0) done += (size_t)count;
  }
  return 0;
}

static void reply(uint32_t kind, uint32_t id, uint32_t value) {
  struct spawn_reply message = {kind, id, value};
  if (write(STDOUT_FILENO, &message, sizeof message) != sizeof message) _exit(1);
}

/* Returns the strings with a NULL after the arguments and after the variables, or NULL if the counts are wrong. */
static char **split(char *bytes, const struct spawn_header *header) {
  size_t first_var = STDIO + (size_t)header->args, count = first_var + header->vars;
  if (header->bytes == 0 || header->args > header->bytes || header->vars > header->bytes) return NULL;
  if (header->args == 0 || bytes[header->bytes - 1] != '\0') return NULL;
  char **strings = calloc(count + 2, sizeof *strings);
  if (!strings) return NULL;
  size_t found = 0;
  for (char *at = bytes; at < bytes + header->bytes; at += strlen(at) + 1) {
    if (found < count) strings[found + (found >= first_var)] = at;
    found++;
  }
  if (found == count) return strings;
  free(strings);
  return NULL;
}

/* The caller holds the other end of each pipe open, so only the open itself must not block. */
static int open_stdio(char **names, int fds[STDIO]) {
  for (int i = 0; i < STDIO; i++) {
    const char *name = *names[i] ? names[i] : "/dev/null";
    fds[i] = open(name, (i == 0 ? O_RDONLY : O_WRONLY) | O_NONBLOCK | O_CLOEXEC);
    if (fds[i] >= 0 && i == 1) fcntl(fds[i], F_SETPIPE_SZ, OUTPUT_BYTES); /* if this fails, output is only slower */
    if (fds[i] >= 0 && fcntl(fds[i], F_SETFL, 0) == 0) continue;
    int error = errno;
    for (; i >= 0; i--) close(fds[i]);
    errno = error;
    return -1;
  }
  return 0;
}

/* The spawner may have died before prctl took effect; the parent is then another process. */
static void tie(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != tied_to) _exit(1);
}

struct child {
  int (*face)(int, char **);
  int argc;
  char **argv;
  const int *fds;
};

/* Runs in the spawner's memory until its exec. */
static int run_child(void *data) {
  const struct child *child = data;
  for (int i = 0; i < STDIO; i++) dup2(child->fds[i], i);
  unblock_signals();
  if (tied_to) tie();
  _exit(child->face(child->argc, child->argv));
}

/* Works like vfork on every processor: musl's vfork is a plain fork on arm64, which copies the memory
   and lets the spawner reply before the exec. The child needs its own stack, because this function
   does not return there. One stack is enough: the parent continues only after the child's exec or
   exit. */
static pid_t borrow_memory(struct child *child) {
  static char stack[CHILD_STACK_BYTES] __attribute__((aligned(16)));
  return clone(run_child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, child);
}

static void start(const struct spawn_header *header, char **strings) {
  int fds[STDIO];
  if (open_stdio(strings, fds) < 0) {
    reply(SPAWN_REFUSED, header->id, (uint32_t)errno);
    return;
  }
  char **argv = strings + STDIO;
  int (*face)(int, char **) = strcmp(argv[0], "fifos") == 0 ? fifos_main : exec_command;
  if (header->vars > 0) environ = argv + header->args + 1;
  /* The child shares our memory, and we wait until its exec: under gVisor, copying the memory would
     take longer than all other steps. Another user cannot reach this memory through the child, because
     the kernel forbids tracing a process that has changed its identity. The exec resets our signal
     handlers; it would keep ignored signals, but there are none. */
  struct child child = {face, (int)header->args, argv, fds};
  pid_t pid = borrow_memory(&child);
  int error = errno;
  environ = own_variables;
  for (int i = 0; i < STDIO; i++) close(fds[i]);
  if (pid < 0) reply(SPAWN_REFUSED, header->id, (uint32_t)error);
  else reply(SPAWN_STARTED, header->id, (uint32_t)pid);
}

/* Returns -1 if the caller is gone or its request is invalid. */
static int serve(void) {
  struct spawn_header header;
  if (read_all(&header, sizeof header) < 0 || header.bytes > MAX_BYTES) return -1;
  char *bytes = malloc(header.bytes);
  if (!bytes) return -1;
  int result = read_all(bytes, header.bytes);
  char **strings = result < 0 ? NULL : split(bytes, &header);
  if (strings) start(&header, strings);
  else if (result == 0) reply(SPAWN_REFUSED, header.id, EINVAL);
  free(strings);
  free(bytes);
  return result;
}

int spawner_main(int argc, char **argv) {
  int tied = argc == 2 && strcmp(argv[1], "--tied") == 0;
  if (argc != 1 && !tied) {
    fputs("spawner: takes no arguments but --tied\n", stderr);
    return 2;
  }
  /* Only the caller may end a tied spawner, so signals to its whole group or session are ignored. */
  static const int watched[] = {SIGCHLD, SIGHUP, SIGINT, SIGTERM};
  reset_signals();
  watch_signals(watched, tied ? LENGTH(watched) : 1, 0);
  own_variables = environ;
  if (tied) {
    tied_to = getpid();
    setsid();
  }
  for (struct pollfd request = {STDIN_FILENO, POLLIN, 0};;) {
    wait_events(&request, 1, -1);
    if (take_signal(SIGCHLD)) {
      int status;
      for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        reply(SPAWN_ENDED, (uint32_t)pid, (uint32_t)status);
    }
    if (request.revents && serve() < 0) return 0;
  }
}
