import { readFile } from 'node:fs/promises'

export interface Controllers {
  readonly version: 'v1' | 'v2'
  readonly controllers: ReadonlySet<string>
}

/** Finds the mounted controllers. A hybrid setup counts as v1, where its limits are. */
export async function findControllers(): Promise<Controllers> {
  const v2 = await readFile('/sys/fs/cgroup/cgroup.controllers', 'utf8').catch(() => undefined)
  if (v2 !== undefined) return { version: 'v2', controllers: new Set(v2.trim().split(' ')) }
  const mounts = await readFile('/proc/self/mountinfo', 'utf8')
  return { version: 'v1', controllers: parseControllers(mounts) }
}

/** Parses mountinfo: after ` - cgroup ` come the source and the options, which include the controllers. */
export function parseControllers(mountinfo: string): Set<string> {
  const lines = mountinfo.split('\n')
  return new Set(lines.flatMap((line) => / - cgroup \S+ (\S+)/.exec(line)?.[1]?.split(',') ?? []))
}
