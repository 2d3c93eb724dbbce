/** Concurrent builds of one team, the queue for further builds, builds that never get ready, and old builds. */
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
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

test('the files of an old build go when no tag has selected it for the set time', async () => {
  const build = async (text: string) => {
    const dockerfile = `FROM base\nRUN echo ${text} > /home/user/text`
    const built = await buildDockerfile(installation, dockerfile, { alias: 'aged' })
    assert.equal(built.status, 'ready', built.reason)
    return built.template.buildID
  }
  const [older, newer] = [await build('older'), await build('newer')]
  await installation.interrupt()
  const filesOf = makeOlder(join(installation.dataDir, 'atoll.db'))
  await installation.start({ ATOLL_UNUSED_BUILD_HOURS: '1' })
  const isKept = async (buildId: string) => {
    const id = filesOf.get(buildId) ?? assert.fail(`build ${buildId} has no files`)
    const names = await readdir(join(installation.dataDir, 'templates'))
    return names.some((name) => name.startsWith(id))
  }
  await waitFor('the files of the older build to go', async () => !(await isKept(older)))
  assert.ok(await isKept(newer))
  const sandbox = await Sandbox.create('aged', installation.connection)
  assert.equal(await sandbox.files.read('/home/user/text'), 'newer\n')
  await sandbox.kill()
})

/** Moves all builds two hours into the past. Returns the ID of the files of each build. */
function makeOlder(path: string): ReadonlyMap<string, string> {
  using database = new DatabaseSync(path)
  const ms = 2 * 3_600_000
  database.exec(`
    update template_builds set updated_at = updated_at - ${ms}, finished_at = finished_at - ${ms};
    update template_tags set created_at = created_at - ${ms};
  `)
  const rows = database.prepare('select id, node_template_id from template_builds').all()
  return new Map(rows.map((row) => [String(row['id']), String(row['node_template_id'])]))
}
