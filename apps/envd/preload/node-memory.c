/*
 * Library that the loader of a sandbox puts before Node.js. Official builds of Node.js contain the deadlock detection of
 * Abseil's mutexes, a debugging aid whose table takes 1 MiB in every process. This turns the detection off before the
 * first mutex is locked. It does nothing in a build that lacks the function.
 */

/* absl::SetMutexDeadlockDetectionMode; 0 is OnDeadlockCycle::kIgnore. */
extern void set_deadlock_detection(int mode)
    __asm__("_ZN4absl29SetMutexDeadlockDetectionModeENS_15OnDeadlockCycleE") __attribute__((weak));

__attribute__((constructor)) static void turn_off(void) {
  if (set_deadlock_detection) set_deadlock_detection(0);
}
