/** Needs root and loop devices. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { run } from '@atoll/kit/run'
import { awaitUnused, loopDevicesBelow } from './loop-devices.ts'

test('an image counts as used while a loop device without a lock has it', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-loop-'))
  t.after(() => rm(dir, { recursive: true }))
  const [image, other] = [join(dir, 'disk.img'), join(dir, 'disk.img-2')]
  for (const file of [image, other]) {
    await writeFile(file, '')
    await truncate(file, 1024 * 1024)
  }
  const attach = async (file: string) => {
    const device = (await run('losetup', ['--find', '--show', file])).trim()
    let isAttached = true
    const detach = async () => {
      if (isAttached) await run('losetup', ['--detach', device])
      isAttached = false
    }
    t.after(detach)
    return { device, detach }
  }
  const [used, unrelated] = [await attach(image), await attach(other)]
  assert.deepEqual(
    (await loopDevicesBelow(dir)).toSorted(),
    [used.device, unrelated.device].toSorted(),
  )
  let isFree = false
  const waiting = awaitUnused(image).then(() => (isFree = true))
  // Each of these reads takes as long as a look of the wait.
  for (let looks = 0; looks < 20; looks += 1) await loopDevicesBelow(dir)
  assert.equal(isFree, false)
  await used.detach()
  await waiting
  assert.deepEqual(await loopDevicesBelow(dir), [unrelated.device])
})
