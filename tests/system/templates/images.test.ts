/** Templates from images of a real registry that requires a password. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { run } from '@atoll/kit/run'
import { BuildError, Sandbox, Template } from 'e2b'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { credentials, createSmallSystem, startRegistry } from './registry.ts'
import type { TestRegistry } from './registry.ts'

let registry: TestRegistry
let reference: string
let folder: string

before(async () => {
  registry = await startRegistry()
  folder = await mkdtemp('/var/tmp/atoll-image-')
  const [lower, upper] = ['lower', 'upper'].map((name) => join(folder, name))
  assert.ok(lower && upper)
  await createSmallSystem(lower, programs)
  await mkdir(join(lower, 'data/dir'), { recursive: true })
  for (const name of ['keep', 'gone', 'dir/old', 'odd name']) {
    await writeFile(join(lower, 'data', name), name)
  }
  await run('chown', ['7:8', join(lower, 'data/keep')])
  await run('chmod', ['4755', join(lower, 'data/keep')])
  // An unpacker that followed these links would write to the host.
  await symlink('/var/tmp', join(lower, 'outside'))
  await mkdir(join(upper, 'data/dir'), { recursive: true })
  await writeFile(join(upper, 'data/.wh.gone'), '')
  await writeFile(join(upper, 'data/.wh.odd name'), '')
  await writeFile(join(upper, 'data/dir/.wh..wh..opq'), '')
  await writeFile(join(upper, 'data/dir/new'), 'new')
  await mkdir(join(upper, 'outside'))
  await writeFile(join(upper, 'outside/atoll-escaped'), '')
  const env = [
    'FROM_IMAGE=yes',
    'PATH=/opt/of-image:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  ]
  reference = await registry.push('some/system:1', { layers: [lower, upper], env })
})
after(async () => {
  await registry[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
})

const programs = [
  ...['bash', 'cat', 'chmod', 'chown', 'dash', 'find', 'grep', 'id', 'ls', 'mkdir', 'sort', 'stat'],
]
  .map((name) => `/usr/bin/${name}`)
  .concat('/usr/sbin/useradd')

for (const runtime of ['gvisor', 'runc'] as const) {
  suite(`images on ${runtime}`, () => {
    let installation: Installation
    let connection: Installation['connection']

    before(async () => {
      installation = await install({
        ATOLL_RUNTIME: runtime,
        ATOLL_REGISTRIES: `http://${registry.host},registry.invalid`,
      })
      connection = installation.connection
    })
    after(() => installation[Symbol.asyncDispose]())

    const size = { cpuCount: 1, memoryMB: 256 }

    test('sandboxes are created from an image, without the files that its layers delete', async () => {
      const lines: string[] = []
      const template = Template().fromImage(reference, credentials).runCmd('cat /data/keep > mine')
      const options = { ...connection, ...size }
      await Template.build(template, 'system', {
        ...options,
        onBuildLogs: ({ message }) => void lines.push(message),
      })
      assert.match(lines.join('\n'), /\[base\] FROM .*some\/system:1/)
      const sandbox = await Sandbox.create('system', connection)
      const { stdout } = await sandbox.commands.run(
        "cd /data; find . | sort; stat -c '%u %g %a' keep; id -un; cat ~/mine; echo; echo $FROM_IMAGE ${PATH%%:*}",
      )
      assert.deepEqual(stdout.split('\n'), [
        ...[
          '.',
          './dir',
          './dir/new',
          './keep',
          '7 8 4755',
          'user',
          'keep',
          'yes /opt/of-image',
          '',
        ],
      ])
      assert.equal(await sandbox.files.read('/outside/atoll-escaped'), '')
      await sandbox.kill()
      const rebuildLines: string[] = []
      await Template.build(template.runCmd('ls'), 'system', {
        ...options,
        onBuildLogs: ({ message }) => void rebuildLines.push(message),
      })
      assert.match(rebuildLines.join('\n'), /\[base\] the image is already on this node/)
      assert.doesNotMatch(installation.output() + lines.join('\n'), /pa"ss word/)
    })

    for (const [what, image, login, reason] of [
      ['of another registry', 'docker.io/library/python:3', undefined, /ATOLL_REGISTRIES/],
      [
        'of a registry that no name server knows',
        'registry.invalid/some/system:1',
        undefined,
        /cannot be used: .*lookup registry\.invalid: /,
      ],
      ['that does not exist', 'no/such:1', credentials, /cannot be used: .*manifest unknown/],
      ['that requires credentials', 'some/system:1', undefined, /cannot be used: .*auth/],
    ] as const) {
      test(`an image ${what} is refused as a base`, async () => {
        const imageReference = /^[\w.]+\.[a-z]+\//.test(image) ? image : `${registry.host}/${image}`
        const template = Template().fromImage(imageReference, login)
        const failure = Template.build(template, 'none', { ...connection, ...size })
        await assert.rejects(failure, (error) => {
          assert.ok(error instanceof BuildError)
          assert.match(error.message, reason)
          return true
        })
      })
    }
  })
}
