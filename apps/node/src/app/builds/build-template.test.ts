import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import { run } from '@atoll/kit/run'
import type { BuildRequest, BuildStep } from '../../domain/builds/build.ts'
import type { Cell, Shape } from '../../domain/sandboxes/cell.ts'
import { UnknownUserError } from '../../domain/sandboxes/commands.ts'
import type { Command } from '../../domain/sandboxes/commands.ts'
import { toSlot, parseSubnet } from '../../domain/network/slot.ts'
import { createBuilds } from './builds.ts'
import { createBuildTemplate } from './build-template.ts'
import type { BuildPorts } from './build-template.ts'
import type { TemplateFiles } from '../lifecycle/cells.ts'

const known = 'a'.repeat(64)

type Step = readonly [type: string, ...args: string[]]

const toCell = (cellId: string, shape: Shape, layer: string): Cell => ({
  record: {
    ...shape,
    cellId,
    layer,
    phase: 'making',
    disk: 'disk.img',
    runtime: 'runc',
    envd: 'e1',
    initToken: '',
  },
  slot: toSlot(parseSubnet('10.0.0.0/24'), 'at', 1),
})

/** Creates a node that records its calls. Commands succeed unless they are called `fail`. */
function setup(overrides: Partial<BuildPorts> = {}) {
  const cells = new Set<string>()
  const ran: string[] = []
  const logs: string[] = []
  const templates = new Map<string, TemplateFiles>([['base', { layer: 'sha' }]])
  const layers = new Map<string, { below: string | undefined; key: string }>()
  const forgotten: string[] = []
  const depth = (name: string): number =>
    1 + (layers.has(name) ? depth(layers.get(name)?.below ?? '') : 0)
  const ports: BuildPorts = {
    cells: { halt: async () => {}, erase: async ({ record }) => void cells.delete(record.cellId) },
    async takeCell({ shape, files }): Promise<Cell> {
      const cellId = `c${cells.size + ran.length}`
      cells.add(cellId)
      return toCell(cellId, shape, files?.layer ?? '')
    },
    records: { update: async () => {} },
    takeWithoutBoot: async () => undefined,
    thaw: async () => {},
    buildingCells: new Set(),
    assignIdentity: async () => {},
    stepVariables: {},
    runStartCommand: async () => {},
    commands: {
      async run(_door, { args, user }: Command, { onLine }) {
        const text = args.at(-1) ?? ''
        if (user === 'unknown-user') throw new UnknownUserError('There is no such user')
        ran.push(`${text} as ${user}`)
        await onLine('stdout', `did ${text}`)
        return text === 'fail' ? { exitCode: 3 } : { exitCode: 0 }
      },
      start: async () => {},
      put: async (_door, file, path) => void ran.push(`put ${file} at ${path}`),
    },
    dropBootPriority: async () => {},
    findTemplate: (id) => templates.get(id),
    templates: {
      add: async ({ templateId, ...files }) => void templates.set(templateId, files),
    },
    layers: {
      find: async (key) => [...layers].find(([, layer]) => layer.key === key)?.[0],
      async add(layer, write) {
        await write('/dir')
        const name = `s${layers.size + 1}`
        layers.set(name, layer)
        return name
      },
      depth,
      sizeBytes: (name) => depth(name) - 1,
    },
    extract: async () => 1,
    syncDisk: async () => {},
    prepare: async () => {},
    images: {
      inspect: async () => ({ digest: 'd', layers: ['a', 'b'], envVars: { FROM: 'image' } }),
      async pull() {
        ran.push('pull')
        return {
          async unpack(layer) {
            ran.push(`unpack ${layer}`)
            return 1
          },
          [Symbol.asyncDispose]: async () => void ran.push('let go'),
        }
      },
    },
    findFiles: async (_owner, hash) => (hash === known ? '/files/known' : undefined),
    ensurePrototype: async () => false,
    discardPrototypes: async () => {},
    readyLimitMs: 1_000,
    nowMs: () => 0,
    ...overrides,
  }
  const builds = createBuilds({
    buildTemplate: createBuildTemplate(ports),
    concurrentBuilds: 2,
    templates: {
      find: (id) => templates.get(id),
      remove: async (id) => void templates.delete(id),
    },
    removeCells: async (id) => void forgotten.push(id),
  })
  const leaving = new AbortController()
  const build = (steps: readonly Step[], more: Partial<BuildRequest> = {}) =>
    builds.build(
      {
        shape: { templateId: 't1', cpuCount: 1, memoryMb: 128, diskSizeMb: 64 },
        parent: 'base',
        ownerId: 'team',
        force: false,
        steps: steps.map(([type, ...args]): BuildStep => ({ type, args, force: false })),
        ...more,
      },
      {
        note: async (step, _level, message) => void logs.push(`${step} ${message}`),
        signal: leaving.signal,
        onStarted: async () => {},
      },
    )
  return { builds, build, cells, ran, logs, templates, layers, forgotten, leaving }
}

const shapeOf = (templateId: string) => ({ templateId, cpuCount: 1, memoryMb: 128, diskSizeMb: 64 })

test('each step leaves a layer, and the template is based on the last', async () => {
  let calls = 0
  const { build, templates, layers, cells, logs } = setup({ nowMs: () => 1_500 * calls++ })
  const built = await build([
    ['RUN', 'one'],
    ['ENV', 'A', 'b'],
    ['RUN', 'two'],
  ])
  assert.deepEqual(built, { sizeBytes: 2 })
  assert.deepEqual(templates.get('t1'), {
    layer: 's2',
    setup: { user: 'user', envVars: { A: 'b' } },
  })
  assert.deepEqual([layers.get('s1')?.below, layers.get('s2')?.below], ['sha', 's1'])
  assert.equal(cells.size, 0)
  assert.deepEqual(logs, [
    'base [base] FROM base',
    '1 [builder 1/3] RUN one',
    '1 [builder 1/3] sandbox booted in 1500 ms',
    '1 [builder 1/3] [stdout]: did one',
    '1 DONE [builder 1/3] RUN one took 4.5s',
    '2 [builder 2/3] ENV A b (settings only)',
    '3 [builder 3/3] RUN two',
    '3 [builder 3/3] sandbox booted in 1500 ms',
    '3 [builder 3/3] [stdout]: did two',
    '3 DONE [builder 3/3] RUN two took 4.5s',
    'finalize Build finished, took 13.5s',
  ])
})

test('the first step starts from the memory of the parent, and the log says so', async () => {
  const shapes: string[] = []
  const { build, logs } = setup({
    async takeWithoutBoot({ shape }) {
      shapes.push(shape.templateId)
      return toCell('warm', shape, 'sha')
    },
  })
  await build([
    ['ENV', 'A', 'b'],
    ['RUN', 'one'],
    ['RUN', 'two'],
  ])
  assert.deepEqual(shapes, ['base'])
  assert.deepEqual(
    logs.filter((line) => line.includes('sandbox')),
    [
      '2 [builder 2/3] sandbox started from the memory of the parent template in 0 ms',
      '3 [builder 3/3] sandbox booted in 0 ms',
    ],
  )
})

test('steps of an earlier build are not repeated, unless forced', async () => {
  const { build, ran, logs } = setup()
  await build([
    ['RUN', 'one'],
    ['RUN', 'two'],
  ])
  await build(
    [
      ['RUN', 'one'],
      ['RUN', 'three'],
    ],
    { shape: shapeOf('t2') },
  )
  assert.deepEqual(ran, ['one as user', 'two as user', 'three as user'])
  assert.ok(logs.includes('1 CACHED [builder 1/2] RUN one'))
  await build([['RUN', 'one']], { shape: shapeOf('t3'), force: true })
  assert.equal(ran.at(-1), 'one as user')
  await build([['RUN', 'one']], { shape: shapeOf('t4'), ownerId: 'other' })
  assert.equal(ran.length, 5)
})

test('a failed step ends the build with its message, and only the layers before it stay', async () => {
  const { build, templates, cells, layers } = setup()
  await assert.rejects(
    build([
      ['RUN', 'one'],
      ['RUN', 'fail'],
      ['RUN', 'two'],
    ]),
    {
      name: 'BuildError',
      step: '2',
      message: 'RUN fail failed with exit status 3',
    },
  )
  assert.equal(templates.has('t1'), false)
  assert.deepEqual([cells.size, layers.size], [0, 1])
})

test('a step of an unknown user fails with the text that published clients compare', async () => {
  const { build } = setup()
  await assert.rejects(build([['RUN', 'whoami', 'unknown-user']]), {
    name: 'BuildError',
    step: '1',
    message:
      "failed to run command 'whoami': command failed: unauthenticated: invalid username: 'unknown-user'",
  })
})

test('steps run with the variables of the operator', async () => {
  const assigned: unknown[] = []
  const stepVariables = { http_proxy: 'http://proxy.example:3128' }
  const { build } = setup({
    stepVariables,
    assignIdentity: async (_cell, _identity, options) => void assigned.push(options?.envVars),
  })
  await build([['RUN', 'install']])
  assert.deepEqual(assigned, [stepVariables])
})

test('files are put into the sandbox before the step that needs them', async () => {
  const { build, ran } = setup()
  const copy = (filesHash: string) => [{ type: 'COPY', args: ['a', 'b'], filesHash, force: false }]
  await build([], { steps: copy(known) })
  assert.match(ran[0] ?? '', /^put \/files\/known at \//)
  const missing = build([], { steps: copy('b'.repeat(64)), shape: shapeOf('t2') })
  await assert.rejects(missing, { step: '1', message: /not uploaded/ })
})

test('a build from a deleted parent fails with the reason', async () => {
  const { build } = setup()
  await assert.rejects(build([], { parent: 'gone' }), {
    step: 'base',
    message: /template gone no longer exists/,
  })
})

test('a template whose start command fails is not created', async () => {
  const runStartCommand = () =>
    Promise.reject(new Fault('timeout', 'not_ready', 'It was not ready'))
  const { build, templates, cells } = setup({ runStartCommand })
  await assert.rejects(build([], { startCommand: 'serve' }), {
    step: 'finalize',
    message: /It was not ready/,
  })
  assert.deepEqual([templates.has('t1'), cells.size], [false, 0])
})

test('errors of host programs and files are not shown to the author of a template', async () => {
  for (const work of [
    () => run('sh', ['-c', 'echo /var/lib/atoll >&2; exit 1']),
    () => readFile('/var/lib/atoll-missing/layer'),
  ]) {
    const takeCell = async () => {
      await work()
      return assert.fail('the work should have failed')
    }
    const { build } = setup({ takeCell })
    await assert.rejects(build([['RUN', 'one']]), (error) => {
      assert.ok(error instanceof Error)
      return error.name !== 'BuildError' && error.message.includes('/var/lib/atoll')
    })
  }
})

test('an id is used once', async () => {
  const { build } = setup()
  const results = await Promise.allSettled([build([['RUN', 'one']]), build([['RUN', 'two']])])
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected'],
  )
  await assert.rejects(build([]), { reason: 'template_exists' })
})

test('a client that disconnects ends the build and removes everything that it made', async () => {
  const { build, cells, templates, leaving } = setup({
    async extract() {
      leaving.abort()
      leaving.signal.throwIfAborted()
      return 1
    },
  })
  await assert.rejects(build([['RUN', 'one']]), { name: 'AbortError' })
  assert.deepEqual([cells.size, templates.has('t1')], [0, false])
})

test('layers do not pile up without end', async () => {
  const { build } = setup()
  const steps = Array.from({ length: 60 }, (_, at): Step => ['RUN', `step ${at}`])
  await assert.rejects(build(steps), { step: '40', message: /at most 40 layers/ })
})

test('an image is fetched once, and given the user that sandboxes expect', async () => {
  const { build, ran, templates, layers, logs } = setup()
  const parent = { reference: 'some/image:1', username: 'me', password: 'secret' }
  await build([['RUN', 'one']], { parent })
  assert.deepEqual(ran.slice(0, 4), ['pull', 'unpack a', 'unpack b', 'let go'])
  assert.deepEqual(ran.slice(4), [' as root', 'one as user'])
  assert.equal(templates.get('t1')?.setup?.envVars['FROM'], 'image')
  assert.deepEqual(
    [...layers.values()].map(({ below }) => below),
    [undefined, 's1', 's2', 's3'],
  )
  await build([['RUN', 'two']], { parent, shape: shapeOf('t2') })
  assert.deepEqual(ran.slice(6), ['two as user'])
  assert.ok(logs.includes('base [base] FROM some/image:1'))
  assert.doesNotMatch(logs.join(), /secret/)
  // Layers pulled with credentials are not shared with other owners.
  await build([], { parent, shape: shapeOf('t3'), ownerId: 'other' })
  assert.deepEqual(ran.slice(7, 10), ['pull', 'unpack a', 'unpack b'])
})

test('a build that is canceled while its memory is saved leaves no prototype', async () => {
  const discarded: string[] = []
  const { build, leaving, templates } = setup({
    async ensurePrototype() {
      leaving.abort()
      return true
    },
    discardPrototypes: async (id) => void discarded.push(id),
  })
  await assert.rejects(build([]), { name: 'AbortError' })
  assert.deepEqual([discarded, templates.has('t1')], [['t1'], false])
})

test('builds beyond the limit wait, say so in their log, and do not block others when canceled', async () => {
  const slow = Promise.withResolvers<void>()
  const { build, leaving, logs } = setup({
    takeCell: () => slow.promise.then(() => assert.fail('gone')),
  })
  const builds = ['t1', 't2', 't3'].map((id) => build([['RUN', id]], { shape: shapeOf(id) }))
  assert.deepEqual(
    logs.filter((line) => line.includes('waiting')),
    [
      'base [base] waiting for other builds: position 1; this node runs 2 at a time (ATOLL_CONCURRENT_BUILDS)',
    ],
  )
  leaving.abort()
  // The waiting build ends although the running ones do not.
  await assert.rejects(builds[2] ?? assert.fail(), { name: 'AbortError' })
  slow.resolve()
  const results = await Promise.allSettled(builds)
  assert.ok(results.every(({ status }) => status === 'rejected'))
})

test('a template is created even if its memory cannot be saved', async () => {
  const refusal = new Fault('invalid', 'deleted_file_open', 'A deleted file is open')
  const { build, templates, logs } = setup({ ensurePrototype: () => Promise.reject(refusal) })
  await build([['RUN', 'one']])
  assert.ok(templates.has('t1'))
  assert.ok(
    logs.includes(
      'finalize [finalize] memory cannot be kept, so sandboxes of this template boot: A deleted file is open',
    ),
  )
})

test('a template is removed with its pre-warmed cells; base is never removed', async () => {
  const { build, builds, templates, forgotten } = setup()
  await build([['RUN', 'one']])
  await builds.remove('t1')
  await builds.remove('t1')
  assert.deepEqual([templates.has('t1'), forgotten], [false, ['t1']])
})
