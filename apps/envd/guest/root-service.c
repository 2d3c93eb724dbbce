/*
 * The root service, one process per connection: authorizes the caller, starts the command, forwards
 * signals and reports the result.
 *
 * Threats: a user who may use sudo is equal to root, so only the authorization is security-critical.
 * Any other user can at most occupy a connection for REQUEST_SECONDS.
 */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REQUEST_SECONDS = 5, BACKLOG = 64 };

/* Returns the listening socket, or -1: the sandbox also works without sudo. */
int open_service(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SOCKET_PATH};
  char directory[] = SOCKET_PATH;
  *strrchr(directory, '/') = '\0';
  mkdir(directory, 0755);
  chmod(directory, 0755);
  unlink(SOCKET_PATH);
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener >= 0 && bind(listener, (struct sockaddr *)&address, sizeof address) == 0 &&
      chmod(SOCKET_PATH, 0666) == 0 && listen(listener, BACKLOG) == 0)
    return listener;
  fprintf(stderr, "init: %s: %s\n", SOCKET_PATH, strerror(errno));
  if (listener >= 0) close(listener);
  return -1;
}

/* Splits the body into exactly as many strings as the header announces, with nothing after them. */
static int split_body(struct request *request, char *body) {
  const struct header *header = &request->header;
  size_t count = STRING_ARGS + (size_t)header->args + header->vars;
  char *at = body, *end = body + header->bytes;
  for (size_t i = 0; i < count; i++) {
    char *nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
    if (!nul) return -1;
    request->strings[i] = at;
    at = nul + 1;
  }
  return at == end ? 0 : -1;
}

static int is_sound(const struct header *header, int fd_count) {
  return header->magic == HEADER_MAGIC && header->bytes <= MAX_REQUEST &&
         STRING_ARGS + header->args + header->vars <= MAX_STRINGS &&
         header->mode <= MODE_VALIDATE && header->fds == fd_count && fd_count > FD_DIRECTORY &&
         (header->mode != MODE_RUN || header->args > 0);
}

/* The alarm ends this process if the request is not complete in time. */
static int receive_request(int socket, struct request *request) {
  static char body[MAX_REQUEST];
  struct parcel parcel = {0};
  int on = 1;
  if (setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0) return -1;
  alarm(REQUEST_SECONDS);
  send_reply(socket, REPLY_READY, 0, "");
  if (receive_bytes(socket, &request->header, sizeof request->header, &parcel) < 0) return -1;
  if (!may_use_sudo(parcel.uid, &request->caller)) {
    char text[128];
    if (*request->caller.name)
      snprintf(text, sizeof text, "%s is not allowed to use sudo", request->caller.name);
    else
      snprintf(text, sizeof text, "uid %u is not allowed to use sudo", parcel.uid);
    send_reply(socket, REPLY_ERROR, 1, text);
    return -1;
  }
  request->caller.gid = parcel.gid;
  memcpy(request->fds, parcel.fds, sizeof request->fds);
  if (!is_sound(&request->header, parcel.fd_count)) return -1;
  if (receive_bytes(socket, body, request->header.bytes, &parcel) < 0) return -1;
  alarm(0);
  return split_body(request, body);
}

/* Returns whether the command still runs. */
static int report(int socket, pid_t command) {
  int status;
  if (waitpid(command, &status, WNOHANG | WUNTRACED) != command) return 1;
  if (WIFSTOPPED(status)) {
    send_reply(socket, REPLY_STOPPED, WSTOPSIG(status), "");
    return 1;
  }
  if (WIFSIGNALED(status)) send_reply(socket, REPLY_KILLED, WTERMSIG(status), "");
  else send_reply(socket, REPLY_EXIT, WEXITSTATUS(status), "");
  return 0;
}

/* gVisor does not send SIGWINCH to the foreground group after a resize, so it is sent here. */
static void pass_signal(const struct request *request, int number, pid_t command) {
  pid_t foreground = -1;
  if (number == SIGWINCH && request->header.fds > FD_TERMINAL)
    foreground = tcgetpgrp(request->fds[FD_TERMINAL]);
  for (size_t i = 0; i < forwarded_count; i++)
    if (number == forwarded_signals[i]) kill(foreground > 1 ? -foreground : -command, number);
}

/* Returns whether the client is still connected. */
static int pass_signals(int socket, const struct request *request, pid_t command) {
  unsigned char wanted[32];
  ssize_t count = recv(socket, wanted, sizeof wanted, MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
  for (ssize_t i = 0; i < count; i++) pass_signal(request, wanted[i], command);
  return count > 0;
}

void serve_connection(int socket) {
  static struct request request;
  static const int watched[] = {SIGCHLD};
  reset_signals();
  prctl(PR_SET_NAME, "sudo-service");
  if (receive_request(socket, &request) < 0) return;
  if (request.header.mode == MODE_VALIDATE) {
    send_reply(socket, REPLY_EXIT, 0, "");
    return;
  }

  /* Makes this process the leader of a session: the command's process group is then never orphaned, so it
     can be stopped and continued. This process ignores the hangup of the terminal and leaves it to the
     command. */
  setsid();
  watch_signals(watched, LENGTH(watched), 0);
  signal(SIGHUP, SIG_IGN);
  char error[sizeof((struct reply *)0)->text];
  pid_t command = start_command(&request, error);
  if (command < 0) {
    send_reply(socket, REPLY_ERROR, 1, error);
    return;
  }
  for (;;) {
    struct pollfd event = {socket, POLLIN, 0};
    wait_events(&event, 1, -1);
    if (take_signal(SIGCHLD) && !report(socket, command)) return;
    if (event.revents && !pass_signals(socket, &request, command)) break;
  }
  kill(-command, SIGHUP);
  kill(-command, SIGCONT);
}
