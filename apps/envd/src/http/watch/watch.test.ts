import assert from 'node:assert/strict'
import { mkdirSync, renameSync } from 'node:fs'
import {
  chmod,
  mkdir,
  mkdtemp,
  rename,
  rm,
  rmdir,
  symlink,
  unlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { run } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { EventType } from '@atoll/contracts/gen/filesystem/filesystem_pb'
import { Code } from '@connectrpc/connect'
import { codeOf } from '../../testing/process-calls.ts'
import { envelope, parseEnvelopes } from '../../testing/envelopes.ts'
import { callFiles, filesOf } from '../../testing/filesystem-client.ts'
import { accessToken, runEnvd } from '../../testing/running-envd.ts'
import { watchFolder } from '../../testing/watch-recorder.ts'

async function setup(base = tmpdir()) {
  const folder = await mkdtemp(join(base, 'atoll-watch-'))
  const envd = await runEnvd()
  const files = filesOf(envd)
  return {
    envd,
    folder,
    files,
    path: (name: string) => join(folder, name),
    watch: (more: object = {}, headers = {}) =>
      watchFolder(files, { path: folder, ...more }, headers),
    async [Symbol.asyncDispose]() {
      assert.deepEqual(envd.unexpectedErrors, [])
      await envd[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

test('a tree deeper than the path limit is watched up to the limit', async () => {
  await using it = await setup()
  const name = 'x'.repeat(200)
  const script = `cd "$0"; for i in $(seq 30); do mkdir ${name}; cd ${name}; done`
  await run('bash', ['-c', script, it.folder])
  try {
    await using watching = await it.watch({ recursive: true })
    await writeFile(it.path(`${name}/${name}/a`), '')
    await mkdir(it.path('d'))
    await watching.saw(`CREATE ${name}/${name}/a`, 'CREATE d')
    await run('mv', [it.path(name), it.path('d')])
    await writeFile(it.path(`d/${name}/${name}/b`), '')
    await watching.saw(`CREATE d/${name}/${name}/b`)
  } finally {
    await run('rm', ['-rf', it.folder]) // rm handles paths beyond the length limit
  }
})

for (const base of [tmpdir(), '/dev/shm']) {
  test(`each change of a file on ${base} is one event`, async () => {
    await using it = await setup(base)
    await using watching = await it.watch()
    await writeFile(it.path('a'), 'x')
    await chmod(it.path('a'), 0o600)
    await rename(it.path('a'), it.path('b'))
    await unlink(it.path('b'))
    await mkdir(it.path('d'))
    await watching.saw('REMOVE b', 'CREATE d')
    const expected = [
      'CREATE a',
      'WRITE a',
      'CHMOD a',
      'RENAME a',
      'CREATE b',
      'REMOVE b',
      'CREATE d',
    ]
    assert.deepEqual(watching.lines(), expected)
  })
}

test('an upload of a new file is a create, a chmod and one write', async () => {
  await using it = await setup()
  await using watching = await it.watch()
  const url = `${it.envd.url}/files?path=${encodeURIComponent(it.path('a'))}&username=root`
  const headers = { 'x-access-token': accessToken, 'content-type': 'application/octet-stream' }
  assert.equal((await fetch(url, { method: 'POST', headers, body: 'x' })).status, 200)
  await mkdir(it.path('last'))
  await watching.saw('CREATE last')
  assert.deepEqual(watching.lines(), ['CREATE a', 'CHMOD a', 'WRITE a', 'CREATE last'])
})

test('without recursion only the folder itself is watched', async () => {
  await using it = await setup()
  await mkdir(it.path('sub'))
  await using watching = await it.watch()
  await writeFile(it.path('sub/inner'), 'x')
  await writeFile(it.path('last'), '')
  await watching.saw('CREATE last')
  assert.deepEqual(watching.lines(), ['CREATE last'])
})

test('a recursive watch covers existing, new and moved folders', async () => {
  await using it = await setup()
  await mkdir(it.path('old/deep'), { recursive: true })
  await using watching = await it.watch({ recursive: true })
  await writeFile(it.path('old/deep/a'), '')
  await watching.saw('CREATE old/deep/a')
  await mkdir(it.path('new'))
  await watching.saw('CREATE new')
  await writeFile(it.path('new/b'), '')
  await watching.saw('CREATE new/b')
  await rename(it.path('old'), it.path('new/moved'))
  await writeFile(it.path('new/moved/deep/c'), '')
  await watching.saw('RENAME old', 'CREATE new/moved', 'CREATE new/moved/deep/c')
  assert.ok(!watching.lines().some((line) => line.includes('old/deep/c')))
})

test('entries created before a new folder is watched are reported once', async () => {
  await using it = await setup()
  await using watching = await it.watch({ recursive: true })
  const script = 'for i in 1 2 3 4 5; do mkdir -p d$i/e/f; touch d$i/a d$i/e/b d$i/e/f/c; done'
  await run('sh', ['-c', script], { cwd: it.folder })
  await writeFile(it.path('end'), '')
  await watching.saw('CREATE end')
  const created = watching.lines().filter((line) => line.startsWith('CREATE d'))
  const expected = [1, 2, 3, 4, 5].flatMap((n) =>
    ['', '/a', '/e', '/e/b', '/e/f', '/e/f/c'].map((rest) => `CREATE d${n}${rest}`),
  )
  assert.deepEqual(created.toSorted(), expected)
})

test('a new folder moved before it is watched is watched at its new path', async () => {
  await using it = await setup()
  await using watching = await it.watch({ recursive: true })
  const script =
    'for i in 1 2 3 4 5 6 7 8; do mkdir -p n$i/deep; touch n$i/deep/a; mv n$i m$i; done'
  await run('sh', ['-c', script], { cwd: it.folder })
  await watching.saw('CREATE m8')
  for (const n of [1, 2, 3, 4, 5, 6, 7, 8]) {
    await writeFile(it.path(`m${n}/deep/b`), '')
    await watching.saw(`CREATE m${n}/deep/b`)
    const entries = watching
      .lines()
      .filter((line) => /^CREATE .(\d).deep.a$/.exec(line)?.[1] === `${n}`)
    // A path may be reported under the old name, the new name, or both, but never twice under one.
    assert.ok(
      entries.length > 0 && entries.length === new Set(entries).size,
      watching.lines().join(', '),
    )
  }
})

test('a new folder is watched whose parent moves before it is', async () => {
  await using it = await setup()
  await using watching = await it.watch({ recursive: true })
  await mkdir(it.path('n'))
  await writeFile(it.path('n/a'), '')
  await watching.saw('CREATE n', 'CREATE n/a')
  // Synchronous, so that envd, in this process, sees both changes at once.
  mkdirSync(it.path('n/deep'))
  renameSync(it.path('n'), it.path('m'))
  await watching.saw('CREATE m')
  await writeFile(it.path('m/deep/b'), '')
  await watching.saw('CREATE m/deep/b')
})

test('a folder moved out of the tree is no longer watched', async () => {
  await using it = await setup()
  await mkdir(it.path('tree/sub'), { recursive: true })
  await using watching = await watchFolder(it.files, { path: it.path('tree'), recursive: true })
  await rename(it.path('tree/sub'), it.path('outside'))
  await watching.saw('RENAME sub')
  await writeFile(it.path('outside/a'), '')
  await writeFile(it.path('tree/end'), '')
  await watching.saw('CREATE end')
  assert.deepEqual(watching.lines(), ['RENAME sub', 'CREATE end'])
})

test('a folder that is removed and recreated is watched again', async () => {
  await using it = await setup()
  await using watching = await it.watch({ recursive: true })
  for (const turn of ['1', '2', '3']) {
    await mkdir(it.path('d'))
    await writeFile(it.path(`d/${turn}`), '')
    await watching.saw(`CREATE d/${turn}`)
    await rm(it.path('d'), { recursive: true })
  }
  await watching.saw('REMOVE d', 'REMOVE d', 'REMOVE d')
})

test('symlinks inside are not followed, and names that are not UTF-8 work', async () => {
  await using it = await setup()
  await mkdir(it.path('tree'))
  await mkdir(it.path('elsewhere'))
  await using watching = await watchFolder(it.files, { path: it.path('tree'), recursive: true })
  await symlink(it.path('elsewhere'), it.path('tree/link'))
  await writeFile(it.path('elsewhere/a'), '')
  await mkdir(Buffer.from(`${it.folder}/tree/\xff`, 'latin1'))
  await writeFile(Buffer.from(`${it.folder}/tree/\xff/\xfe`, 'latin1'), '')
  await watching.saw('CREATE link', 'CREATE \ufffd', 'CREATE \ufffd/\ufffd')
  assert.ok(!watching.lines().includes('CREATE link/a'))
})

test('the watched folder itself is called "."', async () => {
  await using it = await setup()
  await mkdir(it.path('d'))
  await using watching = await watchFolder(it.files, { path: it.path('d'), recursive: true })
  await chmod(it.path('d'), 0o700)
  await rename(it.path('d'), it.path('e'))
  await rmdir(it.path('e'))
  await watching.saw('CHMOD .', 'RENAME .', 'REMOVE .')
})

test('events include entries if requested', async () => {
  await using it = await setup()
  await using watching = await it.watch({ includeEntry: true })
  await using plain = await it.watch()
  await writeFile(it.path('a'), 'hello')
  await watching.saw('CREATE a', 'WRITE a')
  await unlink(it.path('a'))
  await watching.saw('REMOVE a')
  await plain.saw('REMOVE a')
  const write = watching.events.find(({ type }) => type === EventType.WRITE)
  assert.deepEqual([write?.entry?.path, write?.entry?.size], [it.path('a'), 5n])
  assert.equal(watching.events.at(-1)?.entry, undefined)
  assert.ok(plain.events.every(({ entry }) => entry === undefined))
})

test('two watchers of one folder get the same events, and one may stop', async () => {
  await using it = await setup()
  await using stays = await it.watch({ recursive: true })
  {
    await using leaves = await it.watch()
    await writeFile(it.path('a'), '')
    await leaves.saw('CREATE a')
    await stays.saw('CREATE a')
  }
  await writeFile(it.path('b'), '')
  await stays.saw('CREATE b')
})

test('an idle watch stream sends keepalives, and a deadline ends it', async () => {
  await using it = await setup()
  const headers = { 'keepalive-ping-interval': '1', 'connect-timeout-ms': '2500' }
  await using watching = await it.watch({}, headers)
  assert.equal((await watching.failure)?.code, Code.DeadlineExceeded)
  assert.ok(watching.keepalives() >= 1, `${watching.keepalives()} keepalives`)
})

test('WatchDir sends a start frame, then events with names as JSON', async () => {
  await using it = await setup()
  const call = fetch(`${it.envd.url}/filesystem.Filesystem/WatchDir`, {
    method: 'POST',
    headers: {
      'content-type': 'application/connect+json',
      'connect-protocol-version': '1',
      'connect-timeout-ms': '1500',
      'x-access-token': accessToken,
    },
    body: envelope({ path: it.folder }),
  })
  const response = await call
  await mkdir(it.path('d'))
  const frames = parseEnvelopes(Buffer.from(await response.arrayBuffer()))
  assert.deepEqual(
    frames.slice(0, 2).map(({ text }) => JSON.parse(text)),
    [{ start: {} }, { filesystem: { name: 'd', type: 'EVENT_TYPE_CREATE' } }],
  )
  assert.equal(frames.at(-1)?.flags, 2)
  assert.equal(JSON.parse(frames.at(-1)?.text ?? '').error.code, 'deadline_exceeded')
})

test('a polled watcher returns each change once, with its entry, until it is removed', async () => {
  await using it = await setup()
  const { watcherId } = await it.files.createWatcher({
    path: it.folder,
    recursive: true,
    includeEntry: true,
  })
  assert.match(watcherId, /^w[a-z0-9]{20}$/)
  await writeFile(it.path('a'), 'x')
  const seen: string[] = []
  await waitFor('the changes', async () => {
    const { events } = await it.files.getWatcherEvents({ watcherId })
    seen.push(...events.map(({ type, name, entry }) => `${type} ${name} ${entry?.size}`))
    return seen.length >= 2
  })
  assert.deepEqual(seen, ['1 a 1', '2 a 1'])
  assert.deepEqual((await it.files.getWatcherEvents({ watcherId })).events, [])
  await it.files.removeWatcher({ watcherId })
  assert.equal(await codeOf(it.files.getWatcherEvents({ watcherId })), Code.NotFound)
  assert.equal(await codeOf(it.files.removeWatcher({ watcherId })), Code.NotFound)
})

test('a polled watcher that is never polled fails instead of filling memory', async () => {
  await using it = await setup('/dev/shm')
  const { watcherId } = await it.files.createWatcher({ path: it.folder })
  const diligent = await it.files.createWatcher({ path: it.folder })
  await run('sh', ['-c', 'seq 12000 | xargs touch && touch end'], { cwd: it.folder })
  await waitFor('the last change, or the loss of changes', async () => {
    const { body } = await callFiles(it.envd, 'GetWatcherEvents', diligent)
    return body.code === 'internal' || JSON.stringify(body).includes('"end"')
  })
  const answer = await callFiles(it.envd, 'GetWatcherEvents', { watcherId })
  assert.deepEqual([answer.status, answer.body.code], [500, 'internal'])
  assert.equal(await codeOf(it.files.getWatcherEvents({ watcherId })), Code.Internal)
  await it.files.removeWatcher({ watcherId })
})

const refused: [string, (folder: string) => object, Code][] = [
  ['nothing', (at) => ({ path: `${at}/no` }), Code.NotFound],
  ['a file', (at) => ({ path: `${at}/file` }), Code.InvalidArgument],
  ['a path with NUL', (at) => ({ path: `${at}/\0` }), Code.InvalidArgument],
  ['a long path', () => ({ path: '/x'.repeat(2500) }), Code.InvalidArgument],
  ['the home of others', () => ({ path: '~root' }), Code.InvalidArgument],
]

test('paths that cannot be watched are rejected with the right code', async (t) => {
  await using it = await setup()
  await writeFile(it.path('file'), '')
  for (const [what, request, code] of refused) {
    await t.test(what, async () => {
      const message = request(it.folder)
      assert.equal(await codeOf(it.files.createWatcher(message)), code)
      assert.equal(await codeOf(Array.fromAsync(it.files.watchDir(message))), code)
    })
  }
})

test('the number of watchers is limited', async () => {
  await using it = await setup()
  const ids = await Promise.all(
    Array.from({ length: 256 }, () => it.files.createWatcher({ path: it.folder })),
  )
  assert.equal(await codeOf(it.files.createWatcher({ path: it.folder })), Code.ResourceExhausted)
  await it.files.removeWatcher({ watcherId: ids[0]?.watcherId ?? '' })
  await it.files.createWatcher({ path: it.folder })
})
