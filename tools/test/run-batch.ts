import type { RepeatedFile } from './repeat-failed-files.ts'
import type { BatchOutcome } from './test-batch.ts'
import type { FileOutcome } from './test-file.ts'

interface BatchRun {
  runTogether(paths: readonly string[]): Promise<BatchOutcome>
  runAlone(path: string): Promise<FileOutcome>
}

/**
 * Runs files in one process, and each file without an outcome once more, alone. Also returns the fault of the process, if
 * any: if every file passes alone, the files interfere with each other.
 */
export async function runBatch(
  paths: readonly string[],
  { runTogether, runAlone }: BatchRun,
): Promise<{ readonly outcomes: readonly FileOutcome[]; readonly fault?: RepeatedFile }> {
  const [first, ...others] = paths
  if (first === undefined) return { outcomes: [] }
  if (others.length === 0) return { outcomes: [await runAlone(first)] }
  const { files, undecided, faults } = await runTogether(paths)
  const again: FileOutcome[] = []
  for (const path of undecided) again.push(await runAlone(path))
  const outcomes = [...files, ...again]
  if (faults.length === 0) return { outcomes }
  const path = `${first} in one process with ${others.join(', ')}`
  return { outcomes, fault: { path, failures: faults } }
}
