import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import {
  addCounting,
  checkAcknowledgedState,
  emptyAcknowledgedState,
} from './acknowledged/acknowledged-state.ts'
import { prepareWork, workKinds } from './acknowledged/works.ts'
import { startCloud } from '../http-cloud.ts'
import type { HttpCloud } from '../http-cloud.ts'
import { roundsOr, seed } from '../config.ts'
import { egressesOf, namesOf, spawnerOf } from '../host-state.ts'
import type { Names } from '../host-state.ts'
import { randomFrom } from '../mutations.ts'
import type { Random } from '../mutations.ts'
import { serverErrors } from '../server-errors.ts'

/** The server is killed the moment it has answered; `ATOLL_TEST_ROUNDS=50` tries it more often. */
const rounds = roundsOr(3)
const fewestSandboxes = 2
const maxSandboxes = 4
const maxSnapshots = 3

const pools = {
  off: { ATOLL_READY_SANDBOXES: '0', ATOLL_POOL_MEMORY_MB: '0' },
  on: { ATOLL_READY_SANDBOXES: '1', ATOLL_POOL_MEMORY_MB: '400' },
}

describe(
  `kill -9 right after an acknowledgement, ATOLL_TEST_SEED=${seed}`,
  { concurrency: 1, timeout: 180_000 + rounds * 120_000 },
  () => {
    const random = randomFrom(seed)
    const acknowledged = emptyAcknowledgedState()
    let cloud: HttpCloud
    let names: Names
    let deck: string[] = []

    before(async () => {
      cloud = await startCloud({
        ...pools.off,
        ATOLL_RUNTIME: 'gvisor',
        ATOLL_BASE_DISK_SIZE_MB: '64',
        ATOLL_BASE_MEMORY_MB: '256',
      })
      names = await namesOf(cloud.installation.dataDir)
      await populate()
    })
    after(() => cloud?.[Symbol.asyncDispose]())

    for (let round = 1; round <= rounds; round += 1) {
      test(`round ${round} of ${rounds}`, async (t) => {
        if (deck.length === 0) deck = shuffled(workKinds, random)
        const kind = deck.pop() ?? assert.fail()
        const work = await prepareWork(kind, { acknowledged, cloud, random })
        const others = await chooseOthers()
        const setting = random(3) === 0 ? 'on' : 'off'
        t.diagnostic(`${kind}; killed with ${others.name}; pools ${setting}`)

        const reply = await work.request()
        const crashed = cloud.installation.crash()
        for (const pid of others.pids) kill(pid)
        await crashed
        assert.equal(reply.status, work.status, reply.text)
        work.enter?.(reply)

        await cloud.installation.start(pools[setting])
        try {
          await work.check(reply)
          await checkAcknowledgedState(acknowledged, cloud, names)
        } catch (error) {
          t.diagnostic(await serverErrors(names.dataDir))
          throw error
        }
        await populate()
      })
    }

    test('everything is still there after one more kill -9', async () => {
      await cloud.installation.crash()
      await cloud.installation.start(pools.off)
      await checkAcknowledgedState(acknowledged, cloud, names)
    })

    /** Processes killed at the same moment as the server. The spawner would follow it anyway, a little later. */
    async function chooseOthers(): Promise<{ readonly name: string; readonly pids: number[] }> {
      const egress = { name: 'the egress process', pids: await egressesOf(names) }
      const spawner = { name: 'the spawner', pids: [(await spawnerOf(names)) ?? assert.fail()] }
      const nothing = { name: 'nothing else', pids: [] }
      return [nothing, nothing, spawner, egress][random(4)] ?? nothing
    }

    async function populate(): Promise<void> {
      while (acknowledged.sandboxes.size < fewestSandboxes) {
        await addCounting(acknowledged, cloud, await cloud.createSandbox({ timeout: 3600 }))
      }
      while (acknowledged.sandboxes.size > maxSandboxes) {
        const [id = ''] = acknowledged.sandboxes.keys()
        assert.equal((await cloud.platform('DELETE', `/sandboxes/${id}`)).status, 204)
        acknowledged.sandboxes.delete(id)
        acknowledged.killed.add(id)
      }
      while (acknowledged.snapshots.size > maxSnapshots) {
        const [id = ''] = acknowledged.snapshots.keys()
        const path = `/templates/${encodeURIComponent(id)}`
        assert.equal((await cloud.platform('DELETE', path)).status, 204)
        acknowledged.snapshots.delete(id)
        acknowledged.deleted.add(id)
      }
    }
  },
)

function shuffled<T>(items: readonly T[], random: Random): T[] {
  const left = [...items]
  return Array.from(items, () => left.splice(random(left.length), 1)).flat()
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // Gone with the server already.
  }
}
