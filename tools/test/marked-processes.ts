/**
 * Finds all processes that a test process has started, even outside its process group: they inherit an environment
 * variable that marks the test process.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { kill } from 'node:process'

export const markVariable = 'ATOLL_TEST_PROCESS'

export interface MarkedProcess {
  readonly pid: number
  readonly name: string
  /** Data directory of the installation, if the process is an Atoll server. */
  readonly dataDir: string | undefined
}

export function findMarked(mark: string): MarkedProcess[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      const variables = read(`/proc/${pid}/environ`).split('\0')
      if (!variables.includes(`${markVariable}=${mark}`)) return []
      const name = read(`/proc/${pid}/comm`).trim()
      return [{ pid: Number(pid), name, dataDir: valueOf(variables, 'ATOLL_DATA_DIR') }]
    })
}

function valueOf(variables: readonly string[], name: string): string | undefined {
  return variables.find((line) => line.startsWith(`${name}=`))?.slice(name.length + 1)
}

/** Ignores a process that has already ended. A negative PID means the process group. */
export function tryKill(pid: number, signal: NodeJS.Signals): void {
  try {
    kill(pid, signal)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}

/** Returns an empty string if the process has ended. */
function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
