import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import {
  addCountingSandbox,
  emptyAcknowledgedState,
  runScript,
} from './acknowledged/acknowledged-state.ts'
import { prepareRequest } from './acknowledged/all-requests.ts'
import { startCloud } from '../http-cloud.ts'
import type { HttpCloud } from '../http-cloud.ts'
import { seed } from '../config.ts'
import { randomFrom } from '../mutations.ts'
import { createVolatileDisk } from './volatile-disk.ts'
import type { VolatileDisk } from './volatile-disk.ts'

/** Cuts the power right after an acknowledgement. Paused sandboxes, snapshots and templates survive; running sandboxes do not. */
describe(
  `power fails right after an acknowledgement, ATOLL_TEST_SEED=${seed}`,
  { concurrency: 1 },
  () => {
    const acknowledged = emptyAcknowledgedState()
    const random = randomFrom(seed)
    let disk: VolatileDisk
    let cloud: HttpCloud

    before(async () => {
      disk = await createVolatileDisk(4096)
      cloud = await startCloud({
        ATOLL_DATA_DIR: join(disk.path, 'data'),
        ATOLL_RUNTIME: 'gvisor',
        ATOLL_READY_SANDBOXES: '0',
        ATOLL_BASE_DISK_SIZE_MB: '64',
        ATOLL_BASE_MEMORY_MB: '256',
      })
    })
    after(async () => {
      await cloud?.[Symbol.asyncDispose]()
      await disk?.[Symbol.asyncDispose]()
    })

    for (const kind of ['pause', 'snapshot', 'build', 'secret']) {
      test(`an acknowledged ${kind} survives`, async () => {
        await addCountingSandbox(acknowledged, cloud, await cloud.createSandbox())
        const request = await prepareRequest(kind, { acknowledged, cloud, random })
        const reply = await request.send()
        const crash = cloud.installation.crash()
        await disk.capture()
        await crash
        assert.equal(reply.status, request.status, reply.text)
        request.record?.(reply)
        await cloud.installation.down()
        await disk.restore()

        await cloud.installation.start()
        await request.check(reply)
        // Prepared files, such as envd and empty disks, are intact too.
        const sandbox = await cloud.createSandbox()
        assert.equal(await runScript(cloud, sandbox, 'echo works'), 'works\n')
        for (const { sandboxID } of [sandbox, ...runningSandboxes()]) {
          await cloud.platform('DELETE', `/sandboxes/${sandboxID}`)
          acknowledged.sandboxes.delete(sandboxID)
        }
      })
    }

    function runningSandboxes() {
      return [...acknowledged.sandboxes.values()].map(({ sandbox }) => sandbox)
    }
  },
)
