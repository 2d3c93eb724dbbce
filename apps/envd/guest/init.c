/*
 * guest init: PID 1. Restarts envd when it exits, and reaps orphans. --sudo is set under gVisor, where
 * it also accepts connections for the root service and mounts a /proc that caches little. There is no
 * flag for /proc: sandboxes that boot after an upgrade of the node have a guest of their own age. Each
 * connection gets its own process, so no client can block this loop.
 */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
  FIRST_DELAY_MS = 100,
  LAST_DELAY_MS = 2000,
  LONG_LIFE_MS = 10000,
  FAREWELL_MS = 1000,
  REAP_BATCH = 64,
  CLOEXEC_RANGE = 4
};

struct init {
  char **argv;
  pid_t daemon;
  int64_t started_ms;
  int64_t start_at_ms;
  int delay_ms;
  int listener;
  pid_t handlers[MAX_COMMANDS];
};

extern char **environ;

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/*
 * gVisor shows the environment of every process to all users. So the node's secret is moved to a file
 * for root, before any other program runs.
 */
static void hide_token(void) {
  char *token = getenv("ATOLL_INIT_TOKEN");
  if (!token) return;
  char directory[] = TOKEN_PATH;
  *strrchr(directory, '/') = '\0';
  mkdir(directory, 0755);
  int file = open(TOKEN_PATH, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  size_t length = strlen(token);
  int kept = file >= 0 && write(file, token, length) == (ssize_t)length;
  if (file >= 0) close(file);
  if (!kept) return;
  memset(token, 0, length);
  unsetenv("ATOLL_INIT_TOKEN");
  setenv("ATOLL_INIT_TOKEN_FILE", TOKEN_PATH, 1);
}

static void run_daemon(char **argv) {
  setsid();
  int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null >= 0) dup2(null, STDIN_FILENO);
  reset_signals();
  char found[MAX_PATH];
  errno = find_command(argv[0], SECURE_PATH, found);
  if (errno == 0) run_found(found, argv, environ);
  fprintf(stderr, "init: %s: %s\n", argv[0], strerror(errno));
  _exit(127);
}

static void start_daemon(struct init *init) {
  init->started_ms = now_ms();
  init->daemon = fork();
  if (init->daemon == 0) run_daemon(init->argv);
  if (init->daemon < 0) init->start_at_ms = init->started_ms + LAST_DELAY_MS;
}

static void daemon_ended(struct init *init) {
  int64_t now = now_ms();
  init->daemon = -1;
  if (now - init->started_ms >= LONG_LIFE_MS) init->delay_ms = FIRST_DELAY_MS;
  init->start_at_ms = now + init->delay_ms;
  init->delay_ms *= 2;
  if (init->delay_ms > LAST_DELAY_MS) init->delay_ms = LAST_DELAY_MS;
}

/* Returns whether more children may be waiting. The batch is bounded, so that a fork bomb cannot block
   this loop. */
static int reap(struct init *init) {
  for (int i = 0; i < REAP_BATCH; i++) {
    pid_t pid = waitpid(-1, NULL, WNOHANG);
    if (pid <= 0) return 0;
    if (pid == init->daemon) daemon_ended(init);
    for (size_t slot = 0; slot < LENGTH(init->handlers); slot++)
      if (init->handlers[slot] == pid) init->handlers[slot] = 0;
  }
  return 1;
}

static void take_connection(struct init *init) {
  int socket = accept4(init->listener, NULL, NULL, SOCK_CLOEXEC);
  if (socket < 0) return;
  size_t slot = 0;
  while (slot < LENGTH(init->handlers) && init->handlers[slot]) slot++;
  if (slot == LENGTH(init->handlers)) {
    send_reply(socket, REPLY_ERROR, 1, "too many commands at once");
  } else {
    pid_t pid = fork();
    if (pid == 0) {
      close(init->listener);
      serve_connection(socket);
      _exit(0);
    }
    if (pid > 0) init->handlers[slot] = pid;
    else send_reply(socket, REPLY_ERROR, 1, "cannot start a process");
  }
  close(socket);
}

/* Processes that remain after this die with PID 1. */
static int say_farewell(void) {
  kill(-1, SIGTERM);
  for (int64_t end = now_ms() + FAREWELL_MS, now; (now = now_ms()) < end;) {
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) continue;
    if (pid < 0) break;
    wait_events(NULL, 0, (int)(end - now));
  }
  return 0;
}

int init_main(int argc, char **argv) {
  int gvisor = argc > 1 && strcmp(argv[1], "--sudo") == 0;
  if (argc < gvisor + 3 || strcmp(argv[gvisor + 1], "--") != 0) {
    fputs("usage: guest init [--sudo] -- ARGV...\n", stderr);
    return 2;
  }
  struct init init = {.argv = argv + gvisor + 2, .delay_ms = FIRST_DELAY_MS, .listener = -1};
  static const int watched[] = {SIGCHLD, SIGTERM, SIGINT};
  fill_stdio();
  syscall(SYS_close_range, 3, ~0u, CLOEXEC_RANGE);
  if (gvisor) limit_proc_cache();
  hide_token();
  reset_signals();
  watch_signals(watched, LENGTH(watched), 0);
  if (gvisor) init.listener = open_service();
  start_daemon(&init);

  for (int more = 0;;) {
    int timeout = -1;
    if (init.daemon < 0) {
      int64_t left = init.start_at_ms - now_ms();
      timeout = left > 0 ? (int)left : 0;
    }
    struct pollfd event = {init.listener, POLLIN, 0};
    wait_events(&event, 1, more ? 0 : timeout);
    if (take_signal(SIGTERM) || take_signal(SIGINT)) return say_farewell();
    if (take_signal(SIGCHLD) || more) more = reap(&init);
    if (event.revents) take_connection(&init);
    if (init.daemon < 0 && now_ms() >= init.start_at_ms) start_daemon(&init);
  }
}
