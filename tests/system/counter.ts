/** A number in the memory of a process that writes each value to a file it keeps open: both come back, or neither fits. */
import assert from 'node:assert/strict'
import { waitFor } from '@atoll/kit/wait'
import { envdHeaders, openProcess, shell } from './cloud-by-hand.ts'
import type { HandSandbox } from './cloud-by-hand.ts'

const path = '/tmp/counts'
/** A name of its own tells one run of it from another; reading what nobody writes waits without another process. */
const program = `
mkfifo /tmp/tick
exec 3>>${path} 4<>/tmp/tick
name=$RANDOM$RANDOM i=0
while :; do i=$((i+1)); echo "$name $$ $i" >&3; read -t 0.1 -u 4; done
`

/** How long anything may take on a busy machine. */
const patienceMs = 120_000

export async function startCounter(url: string, sandbox: HandSandbox): Promise<void> {
  const script = `setsid bash -c '${program}' </dev/null >/dev/null 2>&1 &`
  const starting = await openProcess(url, envdHeaders(sandbox), shell(script), { user: 'root' })
  await starting.rest()
  const isThere = async () => (await readFileOf(url, sandbox)).status === 200
  await waitFor('the first counts', isThere, { timeoutMs: patienceMs })
}

/** How far it is, once it is seen to go on. Each value it ever had is in the file once, by the same process. */
export async function readCounter(url: string, sandbox: HandSandbox): Promise<number> {
  const first = await countsOf(url, sandbox)
  const counts = await waitFor(
    `the counter of ${sandbox.sandboxID} to go on from ${first.length}`,
    async () => {
      const now = await countsOf(url, sandbox)
      return now.length > first.length && now
    },
    { timeoutMs: patienceMs },
  )
  const [begin = ''] = counts[0]?.split(/ \d+$/) ?? []
  const wrong = counts.findIndex((line, index) => line !== `${begin} ${index + 1}`)
  const around = counts.slice(Math.max(wrong - 1, 0), wrong + 2).join(', ')
  assert.equal(wrong, -1, `${sandbox.sandboxID} has counted ${around}`)
  return counts.length
}

async function countsOf(url: string, sandbox: HandSandbox): Promise<readonly string[]> {
  const { status, text } = await readFileOf(url, sandbox)
  assert.equal(status, 200, `${sandbox.sandboxID}: ${text}`)
  return text.split('\n').filter(Boolean)
}

async function readFileOf(url: string, sandbox: HandSandbox) {
  const headers = envdHeaders(sandbox)
  // One that stands still takes the connection, and says nothing.
  const signal = AbortSignal.timeout(answerMs)
  const reply = await fetch(`${url}/files?path=${path}&username=root`, { headers, signal })
  return { status: reply.status, text: await reply.text() }
}

const answerMs = 60_000
