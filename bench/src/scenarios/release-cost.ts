/** A sandbox from the pool in an installation of this release, against one of the previous release from the repository's history. */
import { openEarlierRelease } from '@atoll/system-tests/administration/earlier-release'
import { startCloud } from '@atoll/system-tests/http-cloud'
import type { HttpCloud } from '@atoll/system-tests/http-cloud'
import { createInTurns } from '../create-in-turns.ts'
import type { Scenario } from '../scenario.ts'

export const releaseCost: Scenario = {
  name: 'release-cost',
  rounds: 50,
  async measure(context) {
    const { testBed, rounds, progress } = context
    await using earlier = await openEarlierRelease()
    if (!earlier) throw new Error('The history of this checkout lacks the previous release')
    progress('starting an installation of the previous release, which may build its base')
    const settings = {
      ATOLL_RUNTIME: 'gvisor',
      ATOLL_BASE_DISK_SIZE_MB: '4096',
      ATOLL_POOL_MEMORY_MB: '1024',
    }
    await using before = await startCloud(settings, { from: earlier.dir })
    const clouds: [string, HttpCloud][] = [
      [`release ${earlier.version}`, before],
      ['this release', await testBed.cloud('gvisor', 'pooled', settings)],
    ]
    const { row } = await createInTurns(context, clouds)
    const [baseline = ''] = clouds.map(([name]) => name)
    return [
      {
        scenario: 'release-cost',
        description: `POST /v2/sandboxes with a full pool, gVisor, ${rounds} rounds, interleaved`,
        rows: ['until 201', 'until first output'].flatMap((until) =>
          clouds.map(([name]) =>
            row(`${name}: ${until}`, name === baseline ? undefined : `${baseline}: ${until}`),
          ),
        ),
      },
    ]
  },
}
