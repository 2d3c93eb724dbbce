import type { FileOutcome } from './test-file.ts'

/** A file that passed in its second run, with the failures of the first. */
export interface RepeatedFile {
  readonly path: string
  readonly failures: readonly string[]
}

/** With more failed files than this, something is broken, and a second run would only take time. */
const maxRepeated = 5

/**
 * Runs failed files once more, one at a time. One lost race among thousands of tests must not hide the result of all
 * others, and must not pass unseen either: the caller reports the repeated files.
 */
export async function repeatFailedFiles(
  firstRuns: readonly FileOutcome[],
  run: (path: string) => Promise<FileOutcome>,
): Promise<{ readonly outcomes: FileOutcome[]; readonly repeated: RepeatedFile[] }> {
  const failed = firstRuns.filter(hasFailed)
  if (failed.length > maxRepeated) return { outcomes: [...firstRuns], repeated: [] }
  const outcomes = firstRuns.filter((outcome) => !hasFailed(outcome))
  const repeated: RepeatedFile[] = []
  for (const { path, failures } of failed) {
    const second = await run(path)
    outcomes.push(second)
    if (!hasFailed(second)) repeated.push({ path, failures })
  }
  return { outcomes, repeated }
}

function hasFailed({ failures }: FileOutcome): boolean {
  return failures.length > 0
}
