/**
 * `npm run fleet`: a fleet to try, on this machine, until Ctrl-C. Nothing of it is kept. Options: `--nodes`, `--apis` and
 * `--edges` with a number.
 */
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { createProgressView } from '@atoll/server/progress'
import { startBalancer } from './balancer.ts'
import { startRig } from './rig.ts'

const { values } = parseArgs({
  options: {
    nodes: { type: 'string', default: '3' },
    apis: { type: 'string', default: '2' },
    edges: { type: 'string', default: '2' },
  },
})
const view = createProgressView(process.stderr)
const say = (text: string) => process.stdout.write(`${text}\n`)

const interrupted = Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
// A second signal must not interrupt the cleaning up.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})

try {
  await runFleet()
} catch (error) {
  view.clear()
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}

async function runFleet(): Promise<void> {
  if (process.getuid?.() !== 0) throw new Error('npm run fleet needs root, as every node does')
  await using rig = await startRig({
    nodes: count('nodes'),
    apis: count('apis'),
    edges: count('edges'),
    settings: { ATOLL_READY_SANDBOXES: '1', ATOLL_READY_SLOTS: '2', ATOLL_POOL_MEMORY_MB: '512' },
    progress: view.report,
  })
  await using apis = await startBalancer(rig.apis.map(({ url }) => url))
  await using edges = await startBalancer(rig.edges.map(({ url }) => url))
  view.clear()
  const { length: nodes } = rig.nodes
  say(
    `A fleet of ${nodes} nodes, ${rig.apis.length} apis and ${rig.edges.length} edges is running.`,
  )
  for (const { name, pid, url } of [...rig.apis, ...rig.edges]) say(`  ${name}  ${url}  (${pid()})`)
  for (const { name, pid, id, machine, dataDir } of rig.nodes)
    say(`  ${name}  ${machine.address}  ${id}  (${pid()})  ${dataDir}`)
  say(`
export E2B_API_URL=${apis.url}
export E2B_SANDBOX_URL=${edges.url}
export E2B_API_KEY=${rig.apiKey}
export ATOLL_API_URL=${apis.url}
export ATOLL_ADMIN_TOKEN=${rig.adminToken}

Stop it with Ctrl-C.`)
  await interrupted
  view.report('removing the fleet', 0)
}

function count(name: keyof typeof values): number {
  const number = Number(values[name])
  if (Number.isInteger(number) && number >= 1 && number <= 9) return number
  throw new Error(`--${name} must be a number from 1 to 9`)
}
