/*
 * Gives the command its own terminal if the caller has one: a new pty, whose slave replaces those of
 * 0, 1 and 2 that are terminals. The caller's terminal is in raw mode meanwhile, so that line editing
 * and job control happen in the inner terminal.
 */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

enum { DRAIN_MS = 50, DRAIN_BYTES = 1024 * 1024 };

static struct termios original;

/* In `sudo a | b` both commands share the terminal, so the command reads it directly. */
static int wants_terminal(void) {
  struct stat info;
  return isatty(STDIN_FILENO) && fstat(STDOUT_FILENO, &info) == 0 && !S_ISFIFO(info.st_mode) &&
         !S_ISSOCK(info.st_mode) && tcgetattr(STDIN_FILENO, &original) == 0;
}

/* Returns whether a pty was opened; without one the command uses the caller's terminal. */
int terminal_open(struct terminal *terminal) {
  terminal->master = terminal->slave = -1;
  if (!wants_terminal()) return 0;
  terminal->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  const char *name = NULL;
  if (terminal->master >= 0 && grantpt(terminal->master) == 0 && unlockpt(terminal->master) == 0)
    name = ptsname(terminal->master);
  if (name) terminal->slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal->slave < 0) {
    if (terminal->master >= 0) close(terminal->master);
    terminal->master = -1;
    return 0;
  }
  tcsetattr(terminal->slave, TCSANOW, &original);
  terminal_resize(terminal);
  terminal->output = isatty(STDOUT_FILENO)   ? STDOUT_FILENO
                     : isatty(STDERR_FILENO) ? STDERR_FILENO
                                             : STDIN_FILENO;
  signal(SIGTTOU, SIG_IGN);
  return 1;
}

/* Sets raw mode and reads only while sudo is in the foreground, so that `sudo job &` does not disturb
   the terminal. */
void terminal_claim(struct terminal *terminal) {
  pid_t foreground = tcgetpgrp(STDIN_FILENO);
  terminal->foreground = foreground < 0 || foreground == getpgrp();
  if (!terminal->foreground || terminal->raw) return;
  if (tcgetattr(STDIN_FILENO, &original) < 0) return;
  struct termios raw = original;
  cfmakeraw(&raw);
  terminal->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

void terminal_release(struct terminal *terminal) {
  pid_t foreground = tcgetpgrp(STDIN_FILENO);
  if (terminal->raw && (foreground < 0 || foreground == getpgrp()))
    tcsetattr(STDIN_FILENO, TCSADRAIN, &original);
  terminal->raw = terminal->foreground = 0;
}

void terminal_resize(const struct terminal *terminal) {
  struct winsize size;
  if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0) ioctl(terminal->master, TIOCSWINSZ, &size);
}

/* fds[0] is the caller's terminal, fds[1] the master. */
void terminal_poll(const struct terminal *terminal, struct pollfd fds[2]) {
  int reads = terminal->foreground && !terminal->ended && !terminal->hung_up && terminal->input_size == 0;
  fds[0] = (struct pollfd){reads ? STDIN_FILENO : -1, POLLIN, 0};
  fds[1] = (struct pollfd){terminal->ended ? -1 : terminal->master, POLLIN, 0};
  if (terminal->input_size > 0) fds[1].events |= POLLOUT;
}

static ssize_t show_output(struct terminal *terminal) {
  char output[4096];
  ssize_t got = read(terminal->master, output, sizeof output);
  for (ssize_t shown = 0, count; shown < got; shown += count)
    if ((count = write(terminal->output, output + shown, (size_t)(got - shown))) <= 0) break;
  return got;
}

/* The master stays open even if no process holds the slave: closing it would hang up the command. */
void terminal_relay(struct terminal *terminal, const struct pollfd fds[2]) {
  if (fds[0].revents) {
    ssize_t got = read(STDIN_FILENO, terminal->input, sizeof terminal->input);
    if (got > 0) terminal->input_size = (size_t)got;
    else if (got == 0 || errno != EAGAIN) terminal->hung_up = 1;
  }
  if (fds[1].revents & POLLOUT && terminal->input_size > 0) {
    ssize_t count = write(terminal->master, terminal->input, terminal->input_size);
    if (count > 0) {
      terminal->input_size -= (size_t)count;
      memmove(terminal->input, terminal->input + count, terminal->input_size);
    }
  }
  if (fds[1].revents & (POLLIN | POLLHUP | POLLERR) && show_output(terminal) <= 0 &&
      errno != EAGAIN)
    terminal->ended = 1;
}

/* The command has exited; its last output may still be in the pty. */
void terminal_drain(struct terminal *terminal) {
  if (terminal->ended) return;
  struct pollfd event = {terminal->master, POLLIN, 0};
  for (size_t total = 0; total < DRAIN_BYTES && poll(&event, 1, DRAIN_MS) > 0;) {
    ssize_t got = show_output(terminal);
    if (got <= 0) return;
    total += (size_t)got;
  }
}
