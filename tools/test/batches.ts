/** Decides which test files share a process. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Bounds what a fault of one file costs: the other files of its batch run again. */
const maxFiles = 12

/**
 * Code of a test that changes or measures its whole process: timers, signals, environment, working folder, memory and CPU
 * time. A file with such code has a process for itself.
 */
const ownsProcess =
  /\bmock\.|\bprocess\.(chdir|umask|on|once|exit|memoryUsage|exitCode|set\w+)\b|\bprocess\.env(\.\w+|\[[^\]]+\]) = |\bglobalThis\.\w+ = |\bmeasureCpuMs\b/

/**
 * Puts files of these packages into batches, and each other file into one of its own. The batches come first: they take
 * longest.
 */
export function toBatches(
  root: string,
  paths: readonly string[],
  packages: readonly string[],
): string[][] {
  const groups = packages.map((folder) =>
    paths.filter((path) => path.startsWith(`${folder}/`) && mayShare(join(root, path))),
  )
  const alone = paths.filter((path) => !groups.some((group) => group.includes(path)))
  return [...groups.flatMap(divide), ...alone.map((path) => [path])]
}

function mayShare(path: string): boolean {
  return !ownsProcess.test(readFileSync(path, 'utf8'))
}

/** Divides files into batches of about the same length. */
function divide(paths: readonly string[]): string[][] {
  const count = Math.ceil(paths.length / maxFiles)
  return Array.from({ length: count }, (_, index) =>
    paths.slice(
      Math.floor((index * paths.length) / count),
      Math.floor(((index + 1) * paths.length) / count),
    ),
  )
}
