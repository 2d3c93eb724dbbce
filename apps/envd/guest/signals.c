/*
 * Signals as events. They stay blocked, so that no system call is interrupted and a forked child
 * cannot run a handler of its parent. ppoll unblocks them atomically.
 */
#define _GNU_SOURCE
#include "guest.h"

#include <signal.h>
#include <time.h>

static volatile sig_atomic_t noted[_NSIG];

static void note(int signal) { noted[signal] = 1; }

/* With keep_ignored, a signal that the caller ignores (nohup) stays ignored. */
void watch_signals(const int *signals, size_t count, int keep_ignored) {
  sigset_t blocked;
  sigemptyset(&blocked);
  for (size_t i = 0; i < count; i++) {
    struct sigaction action;
    if (keep_ignored && sigaction(signals[i], NULL, &action) == 0 && action.sa_handler == SIG_IGN)
      continue;
    sigaddset(&blocked, signals[i]);
    noted[signals[i]] = 0;
    action = (struct sigaction){.sa_handler = note};
    sigaction(signals[i], &action, NULL);
  }
  sigprocmask(SIG_SETMASK, &blocked, NULL);
}

/* Works like poll; a negative timeout waits forever. Also returns at a signal, then with no fd ready. */
int wait_events(struct pollfd *fds, nfds_t count, int timeout_ms) {
  struct timespec limit = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
  sigset_t open;
  sigemptyset(&open);
  int ready = ppoll(fds, count, timeout_ms < 0 ? NULL : &limit, &open);
  if (ready <= 0)
    for (nfds_t i = 0; i < count; i++) fds[i].revents = 0;
  return ready;
}

int take_signal(int signal) {
  int seen = noted[signal];
  noted[signal] = 0;
  return seen;
}

/* Resets all signals to their defaults, because handlers survive a fork and ignored signals an exec. */
void reset_signals(void) {
  struct sigaction action = {.sa_handler = SIG_DFL};
  for (int signal = 1; signal < _NSIG; signal++) sigaction(signal, &action, NULL);
  unblock_signals();
}

void unblock_signals(void) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}
