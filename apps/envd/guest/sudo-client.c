/*
 * guest sudo: replaces sudo. It has no privileges: it sends its arguments, variables, directory and
 * descriptors to the root service and waits, forwarding signals.
 */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { RECHECK_MS = 500, GOES_ON = -1 };

static int complain(const char *text) {
  fprintf(stderr, "sudo: %s\n", text);
  return 1;
}

static int connect_service(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SOCKET_PATH};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
  fprintf(stderr, "sudo: cannot reach the root service: %s\n", strerror(errno));
  return -1;
}

/* Appends the string with its NUL. A string that does not fit makes the size exceed the limit for good. */
static void pack(char *body, size_t *size, const char *text) {
  size_t length = strlen(text) + 1;
  if (*size + length <= MAX_REQUEST) memcpy(body + *size, text, length);
  *size += length;
}

static int send_request(int socket, const struct options *options, const struct terminal *terminal) {
  static char body[MAX_REQUEST];
  size_t size = 0;
  int fds[MAX_FDS] = {0, 1, 2}, fd_count = FD_DIRECTORY + 1;
  pack(body, &size, options->user ? options->user : "");
  pack(body, &size, options->group ? options->group : "");
  pack(body, &size, options->directory ? options->directory : "");
  for (int i = 0; i < options->arg_count && size <= MAX_REQUEST; i++)
    pack(body, &size, options->args[i]);
  for (int i = 0; i < options->var_count && size <= MAX_REQUEST; i++)
    pack(body, &size, options->vars[i]);
  if (size > MAX_REQUEST || STRING_ARGS + options->arg_count + options->var_count > MAX_STRINGS)
    return complain("argument list too long");

  fds[FD_DIRECTORY] = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fds[FD_DIRECTORY] < 0) return complain("cannot open the working directory");
  if (terminal->master >= 0) {
    for (int fd = 0; fd <= 2; fd++)
      if (isatty(fd)) fds[fd] = terminal->slave;
    fds[FD_TERMINAL] = terminal->slave;
    fd_count = FD_TERMINAL + 1;
  }
  mode_t mask = umask(0);
  umask(mask);
  struct header header = {.magic = HEADER_MAGIC, .bytes = (uint32_t)size,
                          .args = (uint16_t)options->arg_count, .vars = (uint16_t)options->var_count,
                          .umask = (uint16_t)mask, .mode = (uint8_t)options->mode,
                          .fds = (uint8_t)fd_count};
  /* A service that rejects the request stops reading; its reply, read later, says why. */
  if (send_bytes(socket, &header, sizeof header, fds, fd_count) == 0)
    send_bytes(socket, body, size, NULL, 0);
  close(fds[FD_DIRECTORY]);
  return 0;
}

/* Ends by the signal that ended the command. */
static int die_by(int number) {
  prctl(PR_SET_DUMPABLE, 0);
  reset_signals();
  raise(number);
  return 128 + number;
}

static void forward(int socket, int number) {
  unsigned char byte = (unsigned char)number;
  send(socket, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The command was stopped: stop too, so that the waiting shell notices, until continued. */
static void pause_together(int socket, struct terminal *terminal) {
  if (terminal->master >= 0) terminal_release(terminal);
  kill(getpid(), SIGSTOP);
  if (terminal->master >= 0) terminal_claim(terminal);
  forward(socket, SIGCONT);
}

/* Returns an exit status, or GOES_ON. */
static int take_reply(int socket, struct terminal *terminal) {
  struct reply reply;
  int lost = receive_reply(socket, &reply) < 0;
  if (!lost && reply.kind == REPLY_STOPPED) {
    pause_together(socket, terminal);
    return GOES_ON;
  }
  if (terminal->master >= 0) terminal_drain(terminal);
  terminal_release(terminal);
  if (lost) return complain("the root service ended the connection");
  if (reply.kind == REPLY_ERROR) return complain(reply.text);
  return reply.kind == REPLY_KILLED ? die_by(reply.value) : reply.value;
}

static void take_signals(int socket, struct terminal *terminal) {
  if (terminal->hung_up == 1) {
    terminal->hung_up = 2;
    forward(socket, SIGHUP);
  }
  for (size_t i = 0; i < forwarded_count; i++) {
    int number = forwarded_signals[i];
    if (!take_signal(number)) continue;
    if (number == SIGCONT && terminal->master >= 0) terminal_claim(terminal);
    if (number == SIGWINCH && terminal->master >= 0) terminal_resize(terminal);
    forward(socket, number);
  }
}

int sudo_main(int argc, char **argv) {
  static struct options options;
  static struct terminal terminal;
  fill_stdio();
  int status = parse_options(argc, argv, &options);
  if (status || options.done) return status;
  int socket = connect_service();
  if (socket < 0) return 1;
  struct reply reply;
  if (receive_reply(socket, &reply) < 0) return complain("the root service ended the connection");
  if (reply.kind != REPLY_READY) return complain(reply.text);

  watch_signals(forwarded_signals, forwarded_count, 1);
  terminal.master = -1;
  int at_terminal = options.mode != MODE_VALIDATE && terminal_open(&terminal);
  status = send_request(socket, &options, &terminal) ? 1 : GOES_ON;
  if (at_terminal && status == GOES_ON) {
    close(terminal.slave);
    terminal_claim(&terminal);
  }
  while (status == GOES_ON) {
    struct pollfd fds[3] = {{socket, POLLIN, 0}, {-1, 0, 0}, {-1, 0, 0}};
    if (at_terminal) terminal_poll(&terminal, fds + 1);
    wait_events(fds, 3, at_terminal && !terminal.foreground ? RECHECK_MS : -1);
    if (at_terminal) {
      if (!terminal.foreground) terminal_claim(&terminal);
      terminal_relay(&terminal, fds + 1);
    }
    take_signals(socket, &terminal);
    if (fds[0].revents) status = take_reply(socket, &terminal);
  }
  if (status == 0 && options.list) puts("You may run any command as any user, without a password.");
  return status;
}
