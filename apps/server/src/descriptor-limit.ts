import { readFile } from 'node:fs/promises'

/** The most that Linux gives a process unless `fs.nr_open` is raised. */
const unlimited = 1_048_576

/** How many files and sockets this process may have open. Node.js raises the soft limit to the hard one when it starts. */
export async function readDescriptorLimit(): Promise<number> {
  return parseDescriptorLimit(await readFile('/proc/self/limits', 'utf8'))
}

export function parseDescriptorLimit(limits: string): number {
  const [, soft] = /^Max open files +(\d+|unlimited)/m.exec(limits) ?? []
  if (soft === undefined) throw new Error('/proc/self/limits does not name "Max open files"')
  return soft === 'unlimited' ? unlimited : Number(soft)
}
