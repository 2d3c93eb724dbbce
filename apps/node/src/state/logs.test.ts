import assert from 'node:assert/strict'
import { appendFile, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { LogEntry, LogQuery } from '../domain/sandboxes/log.ts'
import { createLogFiles } from './logs.ts'

async function setup(fileLimitBytes?: number) {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-logs-'))
  const dir = join(folder, 'sandbox-logs')
  const files = createLogFiles(dir, fileLimitBytes)
  return {
    dir,
    files,
    /** Opens the same folder again, as after a restart of the agent. */
    anew: () => createLogFiles(dir, fileLimitBytes),
    times: async (query: Partial<LogQuery> = {}) =>
      (await files.read({ sandboxId: 'i1', newestFirst: false, limit: 1000, ...query })).map(
        ({ at }) => at,
      ),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  }
}

const entry = (at: number, more: Partial<LogEntry> = {}): LogEntry => ({
  at,
  level: 'info',
  message: `entry ${at}`,
  fields: { logger: 'test' },
  ...more,
})

test('appended entries are read back unchanged', async () => {
  await using log = await setup()
  const odd = entry(5, { message: 'a "b"\n\u2028 \u001b[1m 🌊', fields: { a: '', b: 'ß' } })
  await log.files.append('i1', [entry(4), odd])
  await log.files.append('i1', [])
  const query = { sandboxId: 'i1', newestFirst: false, limit: 10 }
  assert.deepEqual(await log.files.read(query), [entry(4), odd])
  assert.deepEqual(await log.anew().read(query), [entry(4), odd])
})

test('a sandbox without a log has none', async () => {
  await using log = await setup()
  assert.deepEqual([await log.times(), await log.files.lastAt('i1')], [[], 0])
  assert.deepEqual(await log.files.list(), [])
  await log.files.remove('i1')
})

test('times, level, search, order and limit choose entries', async () => {
  await using log = await setup()
  await log.files.append('i1', [
    entry(10, { level: 'debug' }),
    entry(20, { message: 'Needle' }),
    entry(30, { level: 'warn', fields: { logger: 'hay with a Needle' } }),
    entry(40, { level: 'error', message: 'needle' }),
    entry(50, { message: 'a "quote"\nand \\ and ü and 🌊' }),
  ])
  const table: readonly (readonly [Partial<LogQuery>, number[]])[] = [
    [{}, [10, 20, 30, 40, 50]],
    [{ newestFirst: true }, [50, 40, 30, 20, 10]],
    [{ limit: 2 }, [10, 20]],
    [{ limit: 2, newestFirst: true }, [50, 40]],
    [{ limit: 0 }, []],
    [{ fromMs: 20 }, [20, 30, 40, 50]],
    [{ fromMs: 21, beforeMs: 40 }, [30]],
    [{ beforeMs: 30, newestFirst: true }, [20, 10]],
    [{ beforeMs: 5 }, []],
    [{ fromMs: 51 }, []],
    [{ minLevel: 'warn' }, [30, 40]],
    [{ minLevel: 'info', limit: 1 }, [20]],
    [{ search: 'Needle' }, [20, 30]],
    [{ search: 'Needle', newestFirst: true, limit: 1 }, [30]],
    [{ search: '' }, [10, 20, 30, 40, 50]],
    [{ search: '"quote"\nand' }, [50]],
    [{ search: '\\' }, [50]],
    [{ search: 'ü and 🌊' }, [50]],
    [{ search: 'level' }, []],
    [{ search: '"' }, [50]],
  ]
  for (const [query, times] of table) {
    assert.deepEqual(await log.times(query), times, JSON.stringify(query))
  }
})

test('the oldest entries go when there are too many, and times keep rising', async () => {
  await using log = await setup(1000)
  for (let at = 1; at <= 100; at += 1) await log.files.append('i1', [entry(at)])
  const times = await log.times()
  assert.deepEqual(
    times,
    Array.from({ length: times.length }, (_, i) => 101 - times.length + i),
  )
  assert.ok(times.length > 10)
  const [kept] = await log.files.list()
  assert.ok((kept?.sizeBytes ?? 0) < 2300)
  assert.equal(await log.anew().lastAt('i1'), 100)
  assert.deepEqual((await log.times({ newestFirst: true })).slice(0, 2), [100, 99])
})

test('right after the files changed the last time is still known', async () => {
  await using log = await setup(10)
  await log.files.append('i1', [entry(1)])
  await log.files.append('i1', [entry(2)])
  await rm(join(log.dir, 'i1.jsonl'))
  assert.equal(await log.anew().lastAt('i1'), 1)
})

test('a line that a crash cut off is passed over, and those after it are whole', async () => {
  for (const torn of ['{', '{"at":', '{"at":7', '{"at":7,"level":"in']) {
    await using log = await setup()
    await log.files.append('i1', [entry(5)])
    await appendFile(join(log.dir, 'i1.jsonl'), torn)
    const files = log.anew()
    assert.equal(await files.lastAt('i1'), 5, torn)
    await files.append('i1', [entry(8)])
    assert.deepEqual(await log.times(), [5, 8], torn)
    assert.deepEqual(await log.times({ fromMs: 6 }), [8], torn)
    assert.equal(await log.anew().lastAt('i1'), 8, torn)
  }
})

test('logs are listed with their sizes, removed, and readable by root only', async () => {
  await using log = await setup(10)
  await log.files.append('i1', [entry(1)])
  await log.files.append('i1', [entry(2)])
  await log.files.append('i2', [entry(3)])
  const modes = await Promise.all(
    [log.dir, join(log.dir, 'i1.jsonl')].map(async (path) => (await stat(path)).mode & 0o77),
  )
  assert.deepEqual(modes, [0, 0])
  const sizes = (await log.files.list()).map(({ sandboxId, sizeBytes }) => [sandboxId, sizeBytes])
  const size = JSON.stringify(entry(1)).length + 1
  assert.deepEqual(
    new Map(sizes.map(([id, bytes]) => [id, bytes])),
    new Map<unknown, unknown>([
      ['i1', 2 * size],
      ['i2', size],
    ]),
  )
  await log.files.remove('i1')
  assert.deepEqual(await readdir(log.dir), ['i2.jsonl'])
  assert.equal(await log.files.lastAt('i1'), 0)
})

test('the last printed line is known, also after a restart, cut and without blank lines', async () => {
  await using log = await setup()
  const printed = (at: number, message: string) =>
    entry(at, { message, fields: { stream: 'stderr' } })
  assert.equal(await log.files.lastPrinted('i1'), undefined)
  await log.files.append('i1', [printed(1, `${'a'.repeat(199)}🌊${'b'.repeat(5_000)}`)])
  const cut = { at: 1, text: `${'a'.repeat(199)}\ufffd` }
  assert.deepEqual(await log.files.lastPrinted('i1'), cut)
  await log.files.append('i1', [printed(2, '  '), entry(3), entry(4, { message: '"stream":' })])
  assert.deepEqual(await log.files.lastPrinted('i1'), cut)
  assert.deepEqual(await log.anew().lastPrinted('i1'), cut)
  await log.files.append('i1', [printed(5, 'done')])
  assert.deepEqual(await log.anew().lastPrinted('i1'), { at: 5, text: 'done' })
})

test('a search for the last printed line ends after 500 entries', async () => {
  await using log = await setup()
  await log.files.append('i1', [entry(1, { fields: { stream: 'stdout' } })])
  const others = Array.from({ length: 500 }, (_, index) => entry(2 + index))
  await log.files.append('i1', others)
  assert.equal(await log.anew().lastPrinted('i1'), undefined)
  assert.equal(await log.anew().lastAt('i1'), 501)
})
