/*
 * Prints when it is ready, continued or resized, until a signal ends it. Not a script: dash and bash lose signals, or
 * fail, when signals arrive while they start programs or run traps.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t continued;

static void note_continued(int signal) {
  (void)signal;
  continued = 1;
}

int main(void) {
  struct winsize old = {0}, new;
  setvbuf(stdout, NULL, _IONBF, 0);
  signal(SIGCONT, note_continued);
  ioctl(STDIN_FILENO, TIOCGWINSZ, &old);
  puts("ready");
  for (;;) {
    nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
    if (continued) {
      continued = 0;
      puts("again");
    }
    if (ioctl(STDIN_FILENO, TIOCGWINSZ, &new) < 0 || memcmp(&old, &new, sizeof new) == 0) continue;
    old = new;
    printf("%d %d\n", new.ws_row, new.ws_col);
  }
}
