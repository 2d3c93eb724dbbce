/** Options for system tests, from the environment. */
import { randomInt } from 'node:crypto'

/** Returns the number of rounds for randomized tests; `defaultRounds` is the small default of each test. */
export function roundsOr(defaultRounds: number): number {
  const rounds = Number(process.env['ATOLL_TEST_ROUNDS'] ?? defaultRounds)
  if (!Number.isInteger(rounds) || rounds < 1) {
    throw new Error('ATOLL_TEST_ROUNDS must be a whole number from 1 on')
  }
  return rounds
}

/** Random seed. Tests print it in their names, so that a run can be repeated. */
export const seed = Number(process.env['ATOLL_TEST_SEED'] ?? randomInt(2 ** 31))
