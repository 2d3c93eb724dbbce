/** Concurrent builds of one team, the queue for further builds, and builds that never get ready. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { buildDockerfile, callApi, startDockerfile } from './dockerfile-client.ts'
import type { StartedBuild } from './dockerfile-client.ts'

let installation: Installation

before(async () => {
  installation = await install({
    ATOLL_BASE_MEMORY_MB: '256',
    ATOLL_CONCURRENT_BUILDS: '2',
    ATOLL_BUILD_READY_SECONDS: '3',
  })
})
after(() => installation[Symbol.asyncDispose]())

async function untilLine({ progress }: StartedBuild, line: RegExp): Promise<void> {
  await waitFor(`a line with ${line}`, async () => {
    const { status, reason, lines } = await progress()
    assert.notEqual(status, 'error', reason)
    return lines.some((one) => line.test(one))
  })
}

test('as many builds of a team run at a time as the setting says, and others say that they wait', async () => {
  const start = (name: string) =>
    startDockerfile(installation, `FROM base\nRUN echo begun ${name}; sleep 600`)
  const first = await start('first')
  const second = await start('second')
  await untilLine(first, /: begun first$/)
  await untilLine(second, /: begun second$/)
  const third = await start('third')
  await untilLine(third, /waiting for other builds: position 1; this node runs 2 at a time/)
  const { templateID } = first.template
  assert.equal((await callApi(installation, 'DELETE', `/templates/${templateID}`)).status, 204)
  await untilLine(third, /: begun third$/)
  for (const { template } of [second, third]) {
    await callApi(installation, 'DELETE', `/templates/${template.templateID}`)
  }
})

test('a ready command that keeps failing ends the build with its last output', async () => {
  const { status, reason, lines } = await buildDockerfile(installation, 'FROM base', {
    startCmd: 'sleep 600',
    readyCmd: 'echo looking for it; echo not there >&2; exit 9',
  })
  assert.equal(status, 'error')
  assert.match(reason, /not ready within 3 seconds: .* exit status 9/)
  assert.deepEqual(
    lines.filter((line) => /looking|there$/.test(line) && !line.includes('START')),
    ['[finalize] [stdout]: looking for it', '[finalize] [stderr]: not there'],
  )
})
