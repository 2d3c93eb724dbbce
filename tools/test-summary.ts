import { stripVTControlCharacters } from 'node:util'

/** Reads the summary that Node's test runner ends with; cancelled tests count as failed. */
export function countOutcomes(output: string): { passed: number; failed: number } {
  const lines = stripVTControlCharacters(output).split('\n')
  const count = (name: string) => {
    const line = lines.findLast((candidate) => candidate.startsWith(`ℹ ${name} `))
    return Number(line?.split(' ')[2] ?? 0)
  }
  return { passed: count('pass'), failed: count('fail') + count('cancelled') }
}
