import { readFileSync } from 'node:fs'

/**
 * Until a child of the spawner is the command, it borrows the spawner's memory, and the spawner waits. A program of the
 * same user may stop the child just then, or a script name a pipe as its interpreter, which gVisor opens: nothing could
 * be started any more. So while a start is not answered, children are looked at now and then, and who has got no
 * further since the last look is killed.
 */
export interface StuckStarts {
  /** A start has begun. */
  watch(): void
  /** There is none that is not answered. */
  rest(): void
}

export function createStuckStarts(parts: {
  readonly spawnerPid: number | undefined
  readonly lookIntervalMs: number
  /** Whether it is known to have been started. */
  readonly isStarted: (pid: number) => boolean
  readonly kill: (pid: number) => void
}): StuckStarts {
  let timer: NodeJS.Timeout | undefined
  let before: readonly number[] = []

  function look(): void {
    const now = unfinishedOf(parts.spawnerPid).filter((pid) => !parts.isStarted(pid))
    for (const pid of now) if (before.includes(pid)) parts.kill(pid)
    before = now
  }

  return {
    watch() {
      timer ??= setInterval(look, parts.lookIntervalMs).unref()
    },
    rest() {
      clearInterval(timer)
      timer = undefined
      before = []
    },
  }
}

/** Children that still bear the spawner's own name: an exec gives another one. */
function unfinishedOf(pid: number | undefined): number[] {
  if (pid === undefined) return []
  const name = read(`/proc/${pid}/comm`)
  const children = read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean)
  return children.map(Number).filter((child) => read(`/proc/${child}/comm`) === name)
}

/** Nothing of one that has gone meanwhile. */
function read(path: string): string {
  try {
    return readFileSync(path, 'latin1').trim()
  } catch {
    return ''
  }
}
