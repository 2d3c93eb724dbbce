/**
 * Counter in the memory of a process that appends each value to an open file: a restore must bring back both, or they
 * differ.
 */
import assert from 'node:assert/strict'
import { waitFor } from '@atoll/kit/wait'
import { envdHeaders, openProcess, shell } from './http-cloud.ts'
import type { HttpSandbox } from './http-cloud.ts'

const path = '/tmp/counts'
/**
 * Shell program. A random name identifies each run; reading from a FIFO without a writer sleeps without another
 * process.
 */
const program = `
mkfifo /tmp/tick
exec 3>>${path} 4<>/tmp/tick
name=$RANDOM$RANDOM i=0
while :; do i=$((i+1)); echo "$name $$ $i" >&3; read -t 0.1 -u 4; done
`

/** Time limit on a busy machine. */
const waitLimitMs = 120_000

export async function startCounter(url: string, sandbox: HttpSandbox): Promise<void> {
  const script = `setsid bash -c '${program}' </dev/null >/dev/null 2>&1 &`
  const process = await openProcess(url, envdHeaders(sandbox), shell(script), { user: 'root' })
  await process.readRemaining()
  const hasCounts = async () => (await readFileOf(url, sandbox)).status === 200
  await waitFor('the first counts', hasCounts, { timeoutMs: waitLimitMs })
}

/** Returns the current count after it has increased. Checks that the file has each value once, all from one process. */
export async function readCounter(url: string, sandbox: HttpSandbox): Promise<number> {
  const first = await countsOf(url, sandbox)
  const counts = await waitFor(
    `the counter of ${sandbox.sandboxID} to increase from ${first.length}`,
    async () => {
      const latest = await countsOf(url, sandbox)
      return latest.length > first.length && latest
    },
    { timeoutMs: waitLimitMs },
  )
  const [prefix = ''] = counts[0]?.split(/ \d+$/) ?? []
  const wrongIndex = counts.findIndex((line, index) => line !== `${prefix} ${index + 1}`)
  const nearbyCounts = counts.slice(Math.max(wrongIndex - 1, 0), wrongIndex + 2).join(', ')
  assert.equal(wrongIndex, -1, `${sandbox.sandboxID} has counted ${nearbyCounts}`)
  return counts.length
}

async function countsOf(url: string, sandbox: HttpSandbox): Promise<readonly string[]> {
  const { status, text } = await readFileOf(url, sandbox)
  assert.equal(status, 200, `${sandbox.sandboxID}: ${text}`)
  return text.split('\n').filter(Boolean)
}

async function readFileOf(url: string, sandbox: HttpSandbox) {
  const headers = envdHeaders(sandbox)
  // A frozen sandbox accepts the connection but does not answer.
  const signal = AbortSignal.timeout(replyLimitMs)
  const reply = await fetch(`${url}/files?path=${path}&username=root`, { headers, signal })
  return { status: reply.status, text: await reply.text() }
}

const replyLimitMs = 60_000
