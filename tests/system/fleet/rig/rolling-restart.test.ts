import { test } from 'node:test'
import { startRig } from '../../../../tools/fleet/rig.ts'
import { rollParts, rollingSettings } from './rolling.ts'

test('a rolling restart of all parts loses no sandbox and fails no request', async () => {
  await using rig = await startRig({ settings: rollingSettings })
  await rollParts(rig, [{ inOrder: (parts) => parts, apply() {} }])
})
