/** Templates built from a Dockerfile by `POST /templates`, and what sandboxes made of them begin with. */
import assert from 'node:assert/strict'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Sandbox, Template } from 'e2b'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { buildDockerfile, callApi } from './dockerfile-client.ts'

const adminToken = 'token-of-the-operators'

let installation: Installation
let connection: Installation['connection']

before(async () => {
  installation = await install({
    ATOLL_ADMIN_TOKEN: adminToken,
    ATOLL_BASE_MEMORY_MB: '256',
    // No registry answers here, so a name that means an image fails at once.
    ATOLL_REGISTRIES: 'registry.invalid',
    ATOLL_BUILD_ENV: 'PIP_INDEX_URL=https://mirror.invalid/simple GREETING=operator',
  })
  connection = installation.connection
})
after(() => installation[Symbol.asyncDispose]())

const call = (method: string, path: string, given?: { body?: object; as?: object }) =>
  callApi(installation, method, path, given)
const build = (dockerfile: string, fields?: object, as?: object) =>
  buildDockerfile(installation, dockerfile, fields, as)

async function printed(template: string, command: string): Promise<string[]> {
  const sandbox = await Sandbox.create(template, connection)
  const { stdout } = await sandbox.commands.run(command)
  await sandbox.kill()
  return stdout.trim().split('\n')
}

test('FROM base: steps leave files, a user, variables and a running program', async () => {
  const made = await build(
    `ARG PARENT=base
     FROM \${PARENT} AS app
     ENV GREETING=hello NAME="of the image"
     RUN id -un > /srv/first && echo "$GREETING" > /srv/greeting
     USER worker
     WORKDIR /srv/site
     RUN echo "$GREETING $NAME" > index.html && id -un > who && echo "$PIP_INDEX_URL" > mirror
     CMD ["python3", "-m", "http.server", "8123"]`,
    { alias: 'site', readyCmd: 'curl -sf localhost:8123' },
  )
  assert.equal(made.status, 'ready', made.reason)
  assert.match(made.lines[0] ?? '', /base is the template /)
  const found = await call('GET', '/templates')
  const listed = found.json.find((one: { aliases: string[] }) => one.aliases.includes('site'))
  assert.ok(made.template.diskSizeMB > 0)
  assert.equal(made.template.diskSizeMB, listed.diskSizeMB)
  assert.deepEqual(
    await printed(
      'site',
      'whoami; pwd; echo $GREETING; cat /srv/first /srv/greeting who; curl -s localhost:8123; cat mirror; echo "[$PIP_INDEX_URL]"',
    ),
    [
      ...['worker', '/srv/site', 'hello', 'root', 'hello', 'worker', 'hello of the image'],
      // The operator's variables are for build steps only.
      ...['https://mirror.invalid/simple', '[]'],
    ],
  )
})

test('FROM a template of the team keeps its user, directory, variables and files', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-context-'))
  await writeFile(join(folder.path, 'copied'), 'by the parent')
  const parent = Template({ fileContextPath: folder.path })
    .fromImage('base')
    .setEnvs({ FROM_PARENT: 'yes' })
    .setUser('worker')
    .setWorkdir('/srv/parent')
    .copy('copied', '.')
  const size = { cpuCount: 1, memoryMB: 256 }
  await Template.build(parent, 'parent', { ...connection, ...size })
  for (const name of ['parent', 'parent:default']) {
    const child = await build(`FROM ${name}\nRUN cp copied "$(whoami)-$FROM_PARENT"`, {
      alias: 'child',
    })
    assert.equal(child.status, 'ready', child.reason)
    assert.deepEqual(await printed('child', 'whoami; pwd; ls; cat worker-yes'), [
      ...['worker', '/srv/parent', 'copied', 'worker-yes', 'by the parent'],
    ])
  }
})

test('a template of another team is no parent, and counts only for the disk limit of its own', async () => {
  const team = await call('POST', '/admin/teams', {
    body: { name: 'second' },
    as: { 'x-admin-token': adminToken },
  })
  assert.equal(team.status, 201, team.text)
  const as = { 'x-admin-token': adminToken, 'x-team-id': team.json.teamID }
  const mine = await build('FROM base\nRUN echo mine > /srv/mine', { alias: 'mine' })
  assert.equal(mine.status, 'ready', mine.reason)
  const absent = await build('FROM no-such-template', {}, as)
  for (const name of ['mine', mine.template.templateID]) {
    const { status, reason } = await build(`FROM ${name}`, {}, as)
    assert.deepEqual([status, reason], ['error', absent.reason], name)
  }
  assert.match(absent.reason, /ATOLL_REGISTRIES/)
  assert.equal((await build('FROM base\nRUN true', {}, as)).status, 'ready')
  const limited = await call('PATCH', `/admin/teams/${team.json.teamID}`, {
    body: { limits: { keptDiskMB: 2 } },
    as: { 'x-admin-token': adminToken },
  })
  assert.equal(limited.status, 200, limited.text)
  const large = await build('FROM base\nRUN head -c 4000000 /dev/urandom > /srv/large', {}, as)
  assert.equal(large.status, 'error')
  assert.match(large.reason, /templates, .* take \d+ MiB, and its limit is 2 MiB/)
})

test('an unsupported instruction of a Dockerfile is refused with its line', async () => {
  for (const [dockerfile, message] of [
    ['FROM base AS one\nFROM base', /^Line 2 of the Dockerfile: there is more than one FROM/],
    ['FROM base\nCOPY a b', /^Line 2 of the Dockerfile: COPY is not supported/],
    ['FROM $UNSET', /^Line 1 of the Dockerfile: FROM has a variable without a value/],
  ] as const) {
    const { status, json } = await call('POST', '/templates', { body: { dockerfile } })
    assert.equal(status, 400)
    assert.match(json.message, message)
  }
})
