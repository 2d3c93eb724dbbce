import { readFileSync } from 'node:fs'

/**
 * Kills children of the spawner that hang before exec. Until then the child shares the spawner's memory and the spawner
 * waits for it. Another program of the same user may stop the child at that moment, or a script may name a pipe as its
 * interpreter, which gVisor opens: the spawner would be blocked forever. While requests are pending, children are
 * checked at an interval, and a child that has not reached exec since the last check is killed.
 */
export interface SpawnWatchdog {
  /** Call when a request was sent. */
  start(): void
  /** Call when no request is pending. */
  stop(): void
}

export function createSpawnWatchdog(parts: {
  readonly spawnerPid: number | undefined
  readonly lookIntervalMs: number
  /** Whether the spawner has reported this process as started. */
  readonly isStarted: (pid: number) => boolean
  readonly kill: (pid: number) => void
}): SpawnWatchdog {
  let timer: NodeJS.Timeout | undefined
  let lastSeen: readonly number[] = []

  function check(): void {
    const now = unstartedChildren(parts.spawnerPid).filter((pid) => !parts.isStarted(pid))
    for (const pid of now) if (lastSeen.includes(pid)) parts.kill(pid)
    lastSeen = now
  }

  return {
    start() {
      timer ??= setInterval(check, parts.lookIntervalMs).unref()
    },
    stop() {
      clearInterval(timer)
      timer = undefined
      lastSeen = []
    },
  }
}

/** Children that still have the spawner's own name; exec changes it. */
function unstartedChildren(pid: number | undefined): number[] {
  if (pid === undefined) return []
  const name = read(`/proc/${pid}/comm`)
  const children = read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean)
  return children.map(Number).filter((child) => read(`/proc/${child}/comm`) === name)
}

/** Returns an empty string if the process is gone. */
function read(path: string): string {
  try {
    return readFileSync(path, 'latin1').trim()
  } catch {
    return ''
  }
}
