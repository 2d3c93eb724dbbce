const longestMs = 10_000

/** Waits longer after each failed attempt. */
export function reconnectDelayMs(attempts: number): number {
  return Math.min(longestMs, 500 * 2 ** attempts)
}
