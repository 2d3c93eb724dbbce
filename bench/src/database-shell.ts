/**
 * The command line program of a database, as a baseline. It stays open, so that the measured time includes neither the
 * start of the program nor the connection.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { tryRun } from '@atoll/kit/run'
import { aptGet } from '@atoll/node/debian/apt'

export interface DatabaseShell extends AsyncDisposable {
  /** Returns one line for each row. */
  query(statements: string): Promise<string[]>
}

export async function openSqlite3(file: string): Promise<DatabaseShell> {
  const { code } = await tryRun('sh', ['-c', 'command -v sqlite3'])
  if (code !== 0) {
    await aptGet(['install', '--yes', '--no-install-recommends', 'sqlite3'], () => {})
  }
  return open('sqlite3', ['-batch', '-bail', file], `.print ${endMark}`)
}

export async function openPsql(url: string): Promise<DatabaseShell> {
  const options = ['--no-psqlrc', '--quiet', '--tuples-only', '--no-align']
  return open('psql', [...options, '--set=ON_ERROR_STOP=1', url], `\\echo ${endMark}`)
}

const endMark = 'end-of-result'

function open(program: string, args: readonly string[], printEndMark: string): DatabaseShell {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const closed = once(child, 'close')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    async query(statements) {
      child.stdin.write(`${statements}\n${printEndMark}\n`)
      const rows: string[] = []
      for (;;) {
        const { value, done } = await lines.next()
        if (done) throw new Error(`${program} exited before it answered`)
        if (value === endMark) return rows
        rows.push(value)
      }
    },
    async [Symbol.asyncDispose]() {
      child.stdin.end()
      await closed
    },
  }
}
