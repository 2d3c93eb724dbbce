import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createForwarding } from './forwarding.ts'

test('the last installation to end restores the setting', async (t) => {
  const { forwarding, users, value, dir } = await setup(t)
  users.add('first')
  await forwarding.enable()
  users.add('second')
  await forwarding.enable()
  users.delete('first')
  await forwarding.release()
  assert.equal(await value(), '1')
  users.delete('second')
  await forwarding.release()
  assert.deepEqual([await value(), await readdir(dir)], ['0', ['setting']])
})

test('a host that forwarded packets before keeps forwarding them', async (t) => {
  const { forwarding, value, set } = await setup(t)
  await set('1')
  await forwarding.enable()
  await forwarding.release()
  assert.equal(await value(), '1')
})

test('forwarding stays on when one installation starts while the last other one ends', async (t) => {
  const answers = [false, true, false]
  const { forwarding, value } = await setup(t, async () => answers.shift() ?? false)
  await forwarding.enable()
  await forwarding.release()
  assert.equal(await value(), '1')
  await forwarding.release()
  assert.equal(await value(), '0')
})

async function setup(
  t: { after(done: () => Promise<void>): void },
  isInUse?: () => Promise<boolean>,
) {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-forwarding-'))
  t.after(() => rm(dir, { recursive: true }))
  const setting = join(dir, 'setting')
  const users = new Set<string>()
  const set = (text: string) => writeFile(setting, text)
  await set('0')
  return {
    dir,
    users,
    set,
    value: () => readFile(setting, 'utf8'),
    forwarding: createForwarding({
      setting,
      saved: join(dir, 'saved'),
      isInUse: isInUse ?? (async () => users.size > 0),
    }),
  }
}
