import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setupCloud } from '../sim/setup.ts'

const createdAt = '2026-01-01T00:00:00.000Z'
const common = { templateID: 'tpl', buildID: 'b', state: 'running', createdAt }
const family = {
  sandboxes: [
    { ...common, sandboxID: 'ia', parent: { sandboxID: 'igone', kind: 'snapshot' } },
    { ...common, sandboxID: 'ib', parent: { sandboxID: 'ia', kind: 'fork' } },
    {
      ...{ ...common, sandboxID: 'ic', state: 'ended', endReason: 'was\u001B[2J killed' },
      parent: { sandboxID: 'ib', kind: 'fork' },
    },
  ],
  snapshots: [{ snapshotID: 'team/tools:v1', names: [], sandboxID: 'ib', createdAt }],
  isComplete: false,
}

test('lineage prints a tree, and escapes what it does not trust', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  Object.assign(cloud.sandboxes.get(id) ?? {}, { lineage: family })
  assert.deepEqual(await run(['sandbox', 'lineage', id]), {
    code: 0,
    stdout: `igone  ended, no longer recorded
  ia  from snapshot  running  ${createdAt}
    ib  fork  running  ${createdAt}
      snapshot team/tools:v1  ${createdAt}
      ic  fork  ended: was\\x1b[2J killed  ${createdAt}
`,
    stderr: 'The family is too large: a part is left out.\n',
  })
  const json = await run(['sandbox', 'lineage', id, '--json'])
  assert.equal(JSON.parse(json.stdout).sandboxes.length, 3)
})
