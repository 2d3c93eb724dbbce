import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRecordRemoval } from './record-removal.ts'

const listing = JSON.stringify({
  nftables: [
    {
      set: {
        elem: ['link1', 'link2'].map((link) => ({
          elem: { val: { concat: [link, '192.0.2.1', 'tcp', 443] }, expires: 1700 },
        })),
      },
    },
  ],
})

test('the records of one link are removed at once, and a failure is thrown', async () => {
  const scripts: string[] = []
  let isBroken = false
  const removal = createRecordRemoval(
    {
      listSet: async () => listing,
      async remove(lines) {
        if (isBroken) throw new Error('nft is broken')
        scripts.push(...lines)
      },
    },
    'inet t',
    (error) => assert.fail(String(error)),
  )
  await removal.remove('link1')
  const sets = ['allowed_connections', 'denied_connections', 'new_records']
  const key = '"link1" . 192.0.2.1 . tcp . 443'
  assert.deepEqual(
    scripts,
    sets.map((set) => `delete element inet t ${set} { ${key} }`),
  )
  isBroken = true
  await assert.rejects(removal.remove('link1'), /nft is broken/)
  isBroken = false
  await removal.remove('link2')
})
