import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import {
  addCountingSandbox,
  checkAcknowledgedState,
  emptyAcknowledgedState,
} from './acknowledged/acknowledged-state.ts'
import { prepareRequest, requestKinds } from './acknowledged/all-requests.ts'
import { startCloud } from '../http-cloud.ts'
import type { HttpCloud } from '../http-cloud.ts'
import { roundsOr, seed } from '../config.ts'
import { egressesOf, namesOf, spawnerOf } from '../host-state.ts'
import type { Names } from '../host-state.ts'
import { randomFrom } from '../mutations.ts'
import type { Random } from '../mutations.ts'
import { serverErrors } from '../server-errors.ts'

/** Each round kills the server right after a response. `ATOLL_TEST_ROUNDS=50` runs more rounds. */
const rounds = roundsOr(3)
const minSandboxes = 2
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
    let remainingKinds: string[] = []

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
        if (remainingKinds.length === 0) remainingKinds = shuffle(requestKinds, random)
        const kind = remainingKinds.pop() ?? assert.fail()
        const request = await prepareRequest(kind, { acknowledged, cloud, random })
        const extraVictims = await chooseExtraVictims()
        const setting = random(3) === 0 ? 'on' : 'off'
        t.diagnostic(`${kind}; killed with ${extraVictims.name}; pools ${setting}`)

        const reply = await request.send()
        const crash = cloud.installation.crash()
        for (const pid of extraVictims.pids) kill(pid)
        await crash
        assert.equal(reply.status, request.status, reply.text)
        request.record?.(reply)

        await cloud.installation.start(pools[setting])
        try {
          await request.check(reply)
          await checkAcknowledgedState(acknowledged, cloud, names)
        } catch (error) {
          t.diagnostic(await serverErrors(names.dataDir))
          throw error
        }
        await populate()
      })
    }

    test('all acknowledged changes survive one more kill -9', async () => {
      await cloud.installation.crash()
      await cloud.installation.start(pools.off)
      await checkAcknowledgedState(acknowledged, cloud, names)
    })

    /** Processes killed at the same moment as the server. The spawner would exit after the server anyway. */
    async function chooseExtraVictims(): Promise<{
      readonly name: string
      readonly pids: number[]
    }> {
      const egress = { name: 'the egress process', pids: await egressesOf(names) }
      const spawner = { name: 'the spawner', pids: [(await spawnerOf(names)) ?? assert.fail()] }
      const nothing = { name: 'nothing else', pids: [] }
      return [nothing, nothing, spawner, egress][random(4)] ?? nothing
    }

    async function populate(): Promise<void> {
      while (acknowledged.sandboxes.size < minSandboxes) {
        await addCountingSandbox(acknowledged, cloud, await cloud.createSandbox({ timeout: 3600 }))
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

function shuffle<T>(items: readonly T[], random: Random): T[] {
  const remaining = [...items]
  return Array.from(items, () => remaining.splice(random(remaining.length), 1)).flat()
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process has already exited with the server.
  }
}
