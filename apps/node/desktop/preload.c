/* Library that the loader adds to all programs of the template `desktop`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * gVisor refuses close_range() with a last descriptor above INT_MAX. GLib passes UINT_MAX when it starts a program, and
 * gives up. No descriptor has a number above INT_MAX, so the lower limit closes the same descriptors.
 */
int close_range(unsigned int first, unsigned int last, int flags) {
  return syscall(SYS_close_range, first, last > INT_MAX ? INT_MAX : last, flags);
}

typedef int GetTextProperty(void *display, unsigned long window, void *text, unsigned long property);

/*
 * The window manager adds the name of the client's machine to a title when it is not its own name. Its own is the name
 * from before the sandbox was created, so every title would have one. All clients run in the same sandbox.
 */
int XGetTextProperty(void *display, unsigned long window, void *text, unsigned long property) {
  const unsigned long clientMachine = 36; /* XA_WM_CLIENT_MACHINE */
  if (property == clientMachine) return 0;
  GetTextProperty *original = (GetTextProperty *)dlsym(RTLD_NEXT, "XGetTextProperty");
  return original ? original(display, window, text, property) : 0;
}
