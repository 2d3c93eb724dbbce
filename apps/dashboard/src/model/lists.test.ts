import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ListedSandbox, SandboxLogEntry } from '@atoll/client/replies'
import { findAttention } from './attention.ts'
import { findCommands, menuEntries } from './command-search.ts'
import { mergeLog, nextCursor } from './log-lines.ts'
import { appendSample, sparkPath } from './samples.ts'
import { formatFilter, parseFilter, toListQuery, toSearch } from './sandbox-filter.ts'
import { rowsInView } from './virtual-rows.ts'

function sandbox(sandboxID: string, more: Partial<ListedSandbox> = {}): ListedSandbox {
  return {
    sandboxID,
    templateID: 'base',
    clientID: '6532622b',
    startedAt: '2026-01-01T00:00:00Z',
    endAt: '2026-01-01T01:00:00Z',
    cpuCount: 2,
    memoryMB: 512,
    diskSizeMB: 512,
    state: 'running',
    envdVersion: '1',
    ...more,
  }
}

const apiQuery = (query: string) => toListQuery(parseFilter(new URLSearchParams(query)))

test('the filter in the URL becomes a query of the API, and unknown values are ignored', () => {
  assert.equal(apiQuery(''), 'sort=started&order=desc')
  assert.equal(
    apiQuery('q=+a++b+&state=running&template=tools&sort=cpu&order=asc'),
    'search=a+b&state=running&template=tools&sort=cpu&order=asc',
  )
  assert.equal(apiQuery('sort=nonsense&state=nonsense&metadata=x'), 'sort=started&order=desc')
  assert.equal(
    new URLSearchParams(apiQuery('metadata=a=b%26c&metadata=d%3De==f')).get('metadata'),
    'a=b%26c&d=e%3D%3Df',
  )
})

test('a search beyond the limits of the API is cut', () => {
  const search = new URLSearchParams(apiQuery(`q=${'word '.repeat(20)}`)).get('search')
  assert.equal(search, 'word '.repeat(10).trim())
  assert.equal(new URLSearchParams(apiQuery(`q=${'a'.repeat(300)}`)).get('search')?.length, 200)
})

test('a filter survives its way through the URL, and defaults leave no trace', () => {
  const query = '?q=a+b&state=paused&template=x&metadata=k%3Dv&sort=cpu&order=asc'
  assert.equal(formatFilter(parseFilter(new URLSearchParams(query))), query)
  assert.equal(formatFilter(parseFilter(new URLSearchParams())), '')
})

test('of 5,000 rows only those in view are drawn', () => {
  const view = { count: 5_000, rowPx: 36, scrollPx: 36_000, heightPx: 720 }
  assert.deepEqual(rowsInView(view), { first: 992, last: 1_028, topPx: 35_712, totalPx: 180_000 })
  assert.deepEqual(rowsInView({ ...view, count: 0 }), { first: 0, last: 0, topPx: 0, totalPx: 0 })
  const past = rowsInView({ ...view, count: 10 })
  assert.ok(past.first <= past.last && past.last === 10)
})

test('attention goes to sandboxes that died, full memory, near ends, failed builds and denied connections', () => {
  const template = { templateID: 't', names: [], buildStatus: 'error' as const }
  const items = findAttention({
    ending: [sandbox('ib', { endAt: '2026-01-01T00:01:00Z' }), sandbox('ia')],
    largest: [sandbox('ia'), sandbox('ic')],
    templates: [template, { ...template, buildStatus: 'ready' as const }],
    memory: { ia: { memUsed: 95, memTotal: 100 }, ic: { memUsed: 80, memTotal: 100 } },
    denied: [
      { sandboxID: 'ig', name: 'x.example', port: 443, count: 2, lastAt: '2026-01-01T00:00:00Z' },
    ],
    ended: [
      sandbox('id', { endedAt: '2025-12-31T23:50:00Z', endReason: 'ran out of memory' }),
      sandbox('ie', { endedAt: '2025-12-31T23:50:00Z', endReason: 'was killed' }),
      sandbox('if', { endedAt: '2025-12-31T20:50:00Z', endReason: 'ran out of memory' }),
    ],
    now: Date.parse('2026-01-01T00:00:00Z'),
  })
  assert.deepEqual(
    items.map((item) => {
      if (item.kind === 'build') return [item.kind, item.template.templateID]
      const { sandboxID } = item.kind === 'denied' ? item.connection : item.sandbox
      return [item.kind, sandboxID]
    }),
    [
      ['died', 'id'],
      ['memory', 'ia'],
      ['expiring', 'ib'],
      ['build', 't'],
      ['denied', 'ig'],
    ],
  )
})

const entry = (second: number): SandboxLogEntry => ({
  timestamp: `2026-01-01T00:00:0${second}.000Z`,
  level: 'info',
  message: `line ${second}`,
  fields: {},
})

test('a log has each line once, in order, whatever order pages come in', () => {
  const log = mergeLog(mergeLog([], [entry(3), entry(2)]), [entry(3), entry(4)])
  assert.deepEqual(
    log.map(({ message }) => message),
    ['line 2', 'line 3', 'line 4'],
  )
  assert.equal(mergeLog(log, [entry(4)]), log)
  assert.equal(nextCursor(log), Date.parse(entry(4).timestamp))
  assert.equal(nextCursor([]), undefined)
})

test('samples are bounded, and a spark stays in its box', () => {
  const samples = Array.from({ length: 100 }, (_, index) => index).reduce<readonly number[]>(
    appendSample,
    [],
  )
  assert.deepEqual([samples.length, samples.at(-1)], [40, 99])
  assert.equal(
    sparkPath([0, 50, 500, -5], { width: 30, height: 10, top: 100 }),
    'M0.0 10.0L10.0 5.0L20.0 0.0L30.0 10.0',
  )
  assert.equal(sparkPath([], { width: 30, height: 10, top: 100 }), '')
})

test('commands match all words, and commands that begin with the text come first', () => {
  const run = () => {}
  const commands = [
    { label: 'Go to Now', run },
    { label: 'Now or never', run },
    { label: 'iabc', hint: 'running now', run },
  ]
  assert.deepEqual(
    findCommands(commands, 'now').map(({ label }) => label),
    ['Now or never', 'Go to Now', 'iabc'],
  )
  assert.deepEqual(findCommands(commands, 'go x'), [])
})

test('the menu trusts the server for the text that it searched, and filters older answers', () => {
  const run = () => {}
  const commands = [{ label: 'Go to Now', run }]
  const found = { text: 'no', commands: ['inow1', 'ix', 'iy'].map((label) => ({ label, run })) }
  const labels = (text: string) => menuEntries(commands, found, text).map(({ label }) => label)
  assert.deepEqual(labels('no'), ['Go to Now', 'inow1', 'ix', 'iy'])
  assert.deepEqual(labels('now'), ['Go to Now', 'inow1'])
  assert.deepEqual(labels('other'), [])
  const many = {
    text: '',
    commands: Array.from({ length: 100 }, (_, at) => ({ label: `i${at}`, run })),
  }
  assert.equal(menuEntries(commands, many, '').length, 30)
})

test('a search is cut to the limits of the API', () => {
  assert.equal(toSearch('  a   b '), 'a b')
  assert.equal(toSearch('w '.repeat(20)).split(' ').length, 10)
  assert.equal(toSearch('x'.repeat(300)).length, 200)
  assert.equal(toSearch(`${'x'.repeat(199)} y`).length, 199)
})
