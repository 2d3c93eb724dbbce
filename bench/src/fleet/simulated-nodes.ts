/**
 * Program that runs many simulated nodes of one fleet, over real mutual TLS, until its standard input ends. It writes a line
 * when all have joined. A line with a number gives each sandbox as many copies; the answer is a line too. Arguments: number
 * of nodes, URL of the api, its internal address, folder.
 */
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { silentLogger } from '@atoll/kit/log'
import { loadServerConfig } from '@atoll/server/config'
import { joinPart } from '@atoll/server/fleet/join-part'
import { startNodePart } from '@atoll/server/fleet/parts/start-node'
import { simulateNode } from '@atoll/simulated-node/node'
import type { SimulatedNode } from '@atoll/simulated-node/node'
import { copyId } from './copies.ts'

const joinsAtOnce = 8
const joinAttempts = 5

const [count = '', apiUrl = '', fleetAddress = '', folder = ''] = process.argv.slice(2)
const nodes: SimulatedNode[] = []
const numbers = Array.from({ length: Number(count) }, (_, index) => index)
const joining = numbers.values()
await Promise.all(Array.from({ length: joinsAtOnce }, joinMany))
process.stdout.write('ready\n')
for await (const line of createInterface({ input: process.stdin })) {
  for (const node of nodes) copySandboxes(node, Number(line))
  process.stdout.write('copied\n')
}
process.exit()

function copySandboxes(node: SimulatedNode, copies: number): void {
  for (const id of [...node.running.keys()])
    for (let number = 1; number <= copies; number += 1) node.addOrphan(copyId(id, number))
}

/** All workers take from the same numbers. */
async function joinMany(): Promise<void> {
  for (const number of joining) {
    const { dataDir, nodeId } = await joinOne(number)
    await startOne(dataDir, nodeId)
  }
}

/** Joins with another folder after a failure: an api that is busy may have accepted the first one, and answered too late. */
async function joinOne(number: number) {
  for (let attempt = 1; ; attempt += 1) {
    const dataDir = join(folder, `node-${number}-${attempt}`)
    try {
      const token = await createToken()
      const options = { dataDir, api: fleetAddress, token }
      return { dataDir, nodeId: await joinPart({ role: 'node', ...options }) }
    } catch (error) {
      if (attempt === joinAttempts) throw error
    }
  }
}

async function startOne(dataDir: string, nodeId: string): Promise<void> {
  const config = loadServerConfig({
    ATOLL_DATA_DIR: dataDir,
    ATOLL_FLEET_LISTEN: '127.0.0.1:0',
    ATOLL_FLEET_APIS: fleetAddress,
  })
  const node = simulateNode(undefined, nodeId)
  const { transport } = node
  nodes.push(node)
  await startNodePart(config, {
    log: silentLogger,
    startNode: async () => ({ transport, async close() {} }),
  })
}

async function createToken(): Promise<string> {
  const reply = await fetch(`${apiUrl}/fleet/tokens`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'X-Admin-Token': process.env['ATOLL_ADMIN_TOKEN'] ?? '',
    },
    body: JSON.stringify({ role: 'node' }),
  })
  const text = await reply.text()
  if (!reply.ok) throw new Error(`POST /fleet/tokens answers ${reply.status}: ${text}`)
  const { token }: { token: string } = JSON.parse(text)
  return token
}
