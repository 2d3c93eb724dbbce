/** Clock as a dependency, so that tests can control time. */
export interface Clock {
  now(): Date
}

export const systemClock: Clock = { now: () => new Date() }
