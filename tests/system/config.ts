/** What somebody who runs the system tests may ask for. */
import { randomInt } from 'node:crypto'

/** How often what is left to chance is tried; each test has a small number of its own for everyday runs. */
export function roundsOr(usual: number): number {
  const rounds = Number(process.env['ATOLL_TEST_ROUNDS'] ?? usual)
  if (!Number.isInteger(rounds) || rounds < 1) {
    throw new Error('ATOLL_TEST_ROUNDS must be a whole number from 1 on')
  }
  return rounds
}

/** What chance starts from. Tests that use it say it in their names, so that it can be given to the next run. */
export const seed = Number(process.env['ATOLL_TEST_SEED'] ?? randomInt(2 ** 31))
