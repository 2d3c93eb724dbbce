import { readFile } from 'node:fs/promises'

/** Linux default of `fs.nr_open`, the highest possible limit. */
const unlimited = 1_048_576

/** Reads how many files and sockets this process may open. Node.js raises the soft limit to the hard one at start. */
export async function readDescriptorLimit(): Promise<number> {
  return parseDescriptorLimit(await readFile('/proc/self/limits', 'utf8'))
}

export function parseDescriptorLimit(limits: string): number {
  const [, soft] = /^Max open files +(\d+|unlimited)/m.exec(limits) ?? []
  if (soft === undefined) throw new Error('/proc/self/limits does not name "Max open files"')
  return soft === 'unlimited' ? unlimited : Number(soft)
}
