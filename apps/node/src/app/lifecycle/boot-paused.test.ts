import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { simulateNode } from '../../sim/node.ts'

const resume = { sandboxId: 'i1', accessToken: undefined, boot: true }

/** A node on which the disk of a sandbox stays mounted until `unmount` is called. */
function simulateBusyDisk() {
  const unmounted = Promise.withResolvers<void>()
  const waits: string[] = []
  const mounts: string[] = []
  const node = simulateNode({
    overrides: {
      disks: {
        async awaitUnused(image) {
          waits.push(image)
          await unmounted.promise
        },
      },
      async mountRootfs(_cell, image) {
        mounts.push(image)
        return { path: '/rootfs', hasSudo: false }
      },
    },
  })
  return { ...node, waits, mounts, unmount: unmounted.resolve }
}

test('a boot from files waits until nothing has the disk mounted', async () => {
  const { create, sandboxes, waits, mounts, unmount } = simulateBusyDisk()
  await create()
  await sandboxes.pause('i1', { keepMemory: true })
  await sandboxes.settle()
  const before = mounts.length
  const resumed = sandboxes.resume(resume)
  await waitFor('the boot to wait for the disk', () => waits.length === 1)
  assert.equal(mounts.length, before)
  unmount()
  await resumed
  assert.equal(mounts.length, before + 1)
})

test('a pause without memory ends when nothing has the disk mounted, and its image is complete', async () => {
  const { create, sandboxes, waits, unmount } = simulateBusyDisk()
  await create()
  let isPaused = false
  const paused = sandboxes.pause('i1', { keepMemory: false }).then(() => (isPaused = true))
  await waitFor('the pause to wait for the disk', () => waits.length === 1)
  assert.equal(isPaused, false)
  unmount()
  await paused
})
