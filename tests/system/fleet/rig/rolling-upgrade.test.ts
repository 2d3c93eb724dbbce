/** Parts of two states of the code in one fleet, from the repository's history. */
import { test } from 'node:test'
import { thisRelease } from '../../../../tools/fleet/part.ts'
import { startRig } from '../../../../tools/fleet/rig.ts'
import { earlierFleet, openEarlierRelease } from '../../administration/earlier-release.ts'
import { rollParts, rollingSettings } from './rolling.ts'

test('a rolling upgrade and rollback loses no sandbox and fails no request', async (t) => {
  await using earlier = await openEarlierRelease(earlierFleet)
  if (!earlier) {
    t.skip('the history lacks the earlier commit')
    return
  }
  const { dir } = earlier
  await using rig = await startRig({ release: dir, settings: rollingSettings })
  await rollParts(rig, [
    { inOrder: (parts) => parts, apply: (part) => part.setRelease(thisRelease) },
    // The apis last: they decide which nodes are lost, and the earlier ones do so after a minute.
    { inOrder: (parts) => parts.toReversed(), apply: (part) => part.setRelease(dir) },
  ])
})
