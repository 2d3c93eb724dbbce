/* Starts the command of an authorized request: target user, directory, environment and program. */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

struct plan {
  struct account target;
  struct identity who;
  char path[MAX_PATH];
  char *room[MAX_STRINGS + 2];
  char **argv; /* has a free slot before it */
  char *env[MAX_STRINGS + 16];
  int env_count;
};

static pid_t refuse(char *error, const char *format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(error, sizeof((struct reply *)0)->text, format, values);
  va_end(values);
  return -1;
}

static int choose_target(const struct request *request, struct plan *plan, char *error) {
  const char *user = request->strings[STRING_USER], *group = request->strings[STRING_GROUP];
  if (*user || !*group) {
    if (account_by_name(*user ? user : "root", &plan->target) < 0)
      return refuse(error, "unknown user %s", *user ? user : "root");
  } else if (account_by_uid(request->caller.uid, &plan->target) < 0) {
    return refuse(error, "unknown uid %u", request->caller.uid);
  }
  account_groups(&plan->target, &plan->who);
  plan->who.uid = plan->target.uid;
  if (*group && group_by_name(group, &plan->who.gid) < 0)
    return refuse(error, "unknown group %s", group);
  return 0;
}

/* Joins the arguments to one line for `sh -c`, with all special characters escaped. */
static char *shell_line(char **args, int count) {
  size_t size = 1;
  for (int i = 0; i < count; i++) size += 2 * strlen(args[i]) + 1;
  char *line = malloc(size), *to = line;
  if (!line) return NULL;
  for (int i = 0; i < count; i++) {
    if (i > 0) *to++ = ' ';
    for (const char *from = args[i]; *from; from++) {
      unsigned char c = (unsigned char)*from;
      int plain = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c >= 128;
      if (!plain && !strchr("_-$", c)) *to++ = '\\';
      *to++ = *from;
    }
  }
  *to = '\0';
  return line;
}

static char *variable(const struct request *request, const char *name) {
  size_t size = strlen(name);
  char *const *vars = request->strings + STRING_ARGS + request->header.args;
  for (int i = 0; i < request->header.vars; i++)
    if (strncmp(vars[i], name, size) == 0 && vars[i][size] == '=') return vars[i] + size + 1;
  return NULL;
}

static int choose_command(const struct request *request, struct plan *plan, char *error) {
  char **args = (char **)request->strings + STRING_ARGS;
  int count = request->header.args;
  if (request->header.mode == MODE_RUN) {
    memcpy(plan->argv, args, (size_t)count * sizeof *args);
  } else {
    char *wanted = variable(request, "SHELL");
    char *shell = request->header.mode == MODE_LOGIN ? plan->target.shell
                  : wanted && *wanted                ? wanted
                                                     : (char *)request->caller.shell;
    plan->argv[0] = shell;
    if (count > 0) {
      plan->argv[1] = "-c";
      plan->argv[2] = shell_line(args, count);
      if (!plan->argv[2]) return refuse(error, "out of memory");
    }
  }
  if (find_command(plan->argv[0], SECURE_PATH, plan->path) != 0)
    return refuse(error, "%.200s: command not found", plan->argv[0]);
  return 0;
}

static void add_variable(struct plan *plan, const char *name, const char *value) {
  char *text;
  if (plan->env_count + 1 < (int)LENGTH(plan->env) && asprintf(&text, "%s=%s", name, value) >= 0)
    plan->env[plan->env_count++] = text;
}

/* Sets SUDO_COMMAND to the path and arguments, truncated to the maximum length of one string. */
static void add_command_line(struct plan *plan) {
  static char line[MAX_PATH];
  size_t size = (size_t)snprintf(line, sizeof line, "%s", plan->path);
  for (int i = 1; plan->argv[i] && size < sizeof line; i++)
    size += (size_t)snprintf(line + size, sizeof line - size, " %s", plan->argv[i]);
  add_variable(plan, "SUDO_COMMAND", line);
}

/* The client sends the variables that the caller keeps. All others get their defaults here. */
static void choose_environment(const struct request *request, struct plan *plan) {
  const struct { const char *name, *value; } defaults[] = {
      {"HOME", plan->target.home},    {"SHELL", plan->target.shell}, {"USER", plan->target.name},
      {"LOGNAME", plan->target.name}, {"PATH", SECURE_PATH},         {"TERM", "unknown"}};
  char *const *vars = request->strings + STRING_ARGS + request->header.args;
  for (int i = 0; i < request->header.vars; i++)
    if (strncmp(vars[i], "SUDO_", 5) != 0) plan->env[plan->env_count++] = vars[i];
  for (size_t i = 0; i < LENGTH(defaults); i++)
    if (!variable(request, defaults[i].name))
      add_variable(plan, defaults[i].name, defaults[i].value);
  char number[16];
  add_variable(plan, "SUDO_USER", *request->caller.name ? request->caller.name : "unknown");
  snprintf(number, sizeof number, "%u", request->caller.uid);
  add_variable(plan, "SUDO_UID", number);
  snprintf(number, sizeof number, "%u", request->caller.gid);
  add_variable(plan, "SUDO_GID", number);
  add_command_line(plan);
}

/* Runs in the child. Returns only on failure, with errno set. */
static void run(const struct request *request, struct plan *plan) {
  setpgid(0, 0);
  if (request->header.fds > FD_TERMINAL) {
    signal(SIGTTOU, SIG_IGN);
    tcsetpgrp(request->fds[FD_TERMINAL], getpid());
  }
  for (int fd = 0; fd <= 2; fd++)
    if (dup2(request->fds[fd], fd) < 0) return;
  umask((request->header.umask & 0777) | 022);
  if (become(&plan->who) < 0) return;
  if (request->header.mode == MODE_LOGIN) {
    if (chdir(plan->target.home) < 0 && chdir("/") < 0) return;
    const char *base = strrchr(plan->path, '/');
    if (asprintf(&plan->argv[0], "-%s", base ? base + 1 : plan->path) < 0) return;
  }
  reset_signals();
  run_found(plan->path, plan->argv, plan->env);
}

/* Uses a close-on-exec pipe: end-of-file means that the command runs, an errno means that exec failed. */
static pid_t launch(const struct request *request, struct plan *plan, char *error) {
  int failure[2], reason = 0;
  if (pipe2(failure, O_CLOEXEC) < 0) return refuse(error, "pipe: %s", strerror(errno));
  pid_t pid = fork();
  if (pid < 0) return refuse(error, "fork: %s", strerror(errno));
  if (pid == 0) {
    run(request, plan);
    reason = errno;
    ssize_t written = write(failure[1], &reason, sizeof reason);
    _exit(written < 0 ? 126 : 127);
  }
  setpgid(pid, pid);
  close(failure[1]);
  ssize_t got = read(failure[0], &reason, sizeof reason);
  close(failure[0]);
  if (got == sizeof reason) return refuse(error, "%.150s: %s", plan->path, strerror(reason));
  for (int fd = 0; fd <= FD_DIRECTORY; fd++) close(request->fds[fd]);
  return pid;
}

static void take_terminal(const struct request *request, uid_t owner) {
  if (request->header.fds <= FD_TERMINAL) return;
  int terminal = request->fds[FD_TERMINAL];
  ioctl(terminal, TIOCSCTTY, 0);
  if (fchown(terminal, owner, (gid_t)-1) < 0) return;
}

/* Returns the pid of the command, the leader of its own process group, or -1 with the reason in `error`. */
pid_t start_command(const struct request *request, char error[254]) {
  static struct plan plan;
  plan.argv = plan.room + 1;
  const char *directory = request->strings[STRING_DIRECTORY];
  if (choose_target(request, &plan, error) < 0) return -1;
  if (fchdir(request->fds[FD_DIRECTORY]) < 0 || (*directory && chdir(directory) < 0))
    return refuse(error, "%.150s: %s", *directory ? directory : "working directory", strerror(errno));
  if (choose_command(request, &plan, error) < 0) return -1;
  choose_environment(request, &plan);
  take_terminal(request, plan.who.uid);
  return launch(request, &plan, error);
}
