const minuteMs = 60_000
const delaysMs = [1, 5, 15, 60, 180, 360].map((minutes) => minutes * minuteMs)

export const longestDelayMs = 360 * minuteMs

/** Returns the wait after this many failures in a row. CAs allow about five failures per hour and name. */
export function retryDelayMs(failures: number): number {
  return delaysMs[failures - 1] ?? longestDelayMs
}
