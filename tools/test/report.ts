/** Output of `npm test` about its files and phases. */
import type { FileOutcome } from './test-file.ts'

const slowestShown = 10

export function printOutcome(outcome: FileOutcome): void {
  const { path, failures, output } = outcome
  const verdict = failures.length > 0 ? 'FAILED' : `ok, ${describeCount([outcome])}`
  print(`-- ${path}: ${verdict} (${seconds(outcome)})`)
  process.stdout.write(output)
  failures.forEach((failure) => print(`FAILED ${path}: ${failure}`))
}

export function showSlowest(finished: readonly FileOutcome[]): void {
  if (finished.length <= slowestShown) return
  print('\nslowest files:')
  finished
    .toSorted((a, b) => b.seconds - a.seconds)
    .slice(0, slowestShown)
    .forEach((outcome) => print(`${seconds(outcome).padStart(9)}  ${outcome.path}`))
}

/** Counts test functions first: the number of rows in their tables says little. */
export function describeCount(counted: readonly FileOutcome[]): string {
  const functions = counted.reduce((sum, { passed }) => sum + passed, 0)
  const cases = counted.reduce((sum, { passedCases }) => sum + passedCases, 0)
  return cases > functions ? `${functions} tests with ${cases} cases` : `${functions} tests`
}

export function heading(text: string, since: number): void {
  print(`== ${text} (${((performance.now() - since) / 1000).toFixed(1)} s)`)
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

function seconds(outcome: FileOutcome): string {
  return `${outcome.seconds.toFixed(1)} s`
}
