import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { compareErrorsPage, entryGroups, readCatalogue, readFaultSources } from './errors.ts'
import type { EntryGroup } from './errors/entry.ts'
import { findFaults } from './errors/find-faults.ts'
import { kinds } from './errors/kinds.ts'
import { renderErrorsPage } from './errors/page.ts'

const sources = readFaultSources()
const catalogue = readCatalogue(sources, entryGroups)

function scan(files: Record<string, string>) {
  const { faults, problems } = findFaults(new Map(Object.entries(files)), [], kinds)
  return { reasons: faults.map(({ kind, reason }) => `${kind} ${reason}`), problems }
}

describe('the scan', () => {
  test('reads literals, also over several lines and after comments', () => {
    const text = `
      throw new Fault(
        'invalid', // new Fault('internal', 'in_a_comment', '')
        'bad_name',
        \`\${name} (\${list.map((one) => \`'\${one}'\`).join(', ')}) is bad\`,
      )
      const a = new Fault('conflict', 'taken', '', { cause })`
    assert.deepEqual(scan({ 'a.ts': text }).reasons, ['invalid bad_name', 'conflict taken'])
  })

  test('reads both values of a condition', () => {
    const text = `new Fault('internal', isBoot ? 'boot_failed' : 'start_failed', message)`
    assert.deepEqual(scan({ 'a.ts': text }).reasons, [
      'internal boot_failed',
      'internal start_failed',
    ])
  })

  test('resolves constants of the same file, of another file and of a package', () => {
    const { reasons, problems } = scan({
      'apps/x/src/a.ts': `
        import { there } from '../src/b.ts'
        import { diskFull } from '@atoll/kit/disk-full'
        const here = 'here_1'
        new Fault('invalid', here, ''); new Fault('invalid', there, ''); new Fault('invalid', diskFull, '')`,
      'apps/x/src/b.ts': `export const there = 'there_1'`,
      'packages/kit/src/disk-full.ts': `export const diskFull = 'disk_full'`,
    })
    assert.deepEqual(reasons, ['invalid here_1', 'invalid there_1', 'invalid disk_full'])
    assert.deepEqual(problems, [])
  })

  for (const args of [
    "'invalid', reason",
    '`invalid`, `x_${y}`',
    "kind, 'a'",
    "'wrong_kind', 'a'",
  ]) {
    test(`reports new Fault(${args}) as not understood`, () => {
      assert.match(scan({ 'a.ts': `new Fault(${args}, '')` }).problems.join(), /cannot resolve/)
    })
  }

  test('reports a computed fault that is gone', () => {
    const gone = { path: 'a.ts', args: 'kind, reason', values: [] }
    const { problems } = findFaults(new Map([['a.ts', '']]), [gone], kinds)
    assert.match(problems.join(), /which is not in a\.ts/)
  })
})

describe('the catalogue', () => {
  test('explains every fault of the sources, and no other', () => {
    assert.deepEqual(catalogue.problems, [])
    assert.ok(catalogue.faults.length > 200, `Found only ${catalogue.faults.length} faults`)
  })

  test('finds a fault without an explanation, also if another area explains its reason', () => {
    const path = 'apps/edge/src/new.ts'
    const text = `new Fault('invalid', 'brand_new', ''); new Fault('invalid', 'bad_cwd', '')`
    assert.deepEqual(problemsWith(new Map([...sources, [path, text]])), [
      'tools/errors does not explain edge: brand_new',
      'tools/errors does not explain edge: bad_cwd',
    ])
  })

  test('finds an explanation without a fault', () => {
    const spare: EntryGroup = { area: 'cli', title: '', entries: { long_gone: ['', ''] } }
    assert.deepEqual(problemsWith(sources, [...entryGroups, spare]), [
      'tools/errors explains cli: long_gone, which no fault has',
    ])
  })

  test('finds a reason that is explained twice, and a path without an area', () => {
    const again: EntryGroup = { area: 'cli', title: '', entries: { no_key: ['', ''] } }
    assert.deepEqual(problemsWith(sources, [...entryGroups, again]), [
      'tools/errors explains cli: no_key twice',
    ])
    const path = 'apps/new/src/a.ts'
    assert.deepEqual(problemsWith(new Map([...sources, [path, `new Fault('invalid', 'a', '')`]])), [
      `${path}: tools/errors/areas.ts names no area for this path`,
    ])
  })

  test('finds a published reason without a fault', () => {
    const less = new Map(
      [...sources].filter(([, text]) => !text.includes("'sandbox_start_in_flight'")),
    )
    assert.ok(
      problemsWith(less).includes('no fault has the published reason sandbox_start_in_flight'),
    )
  })

  test('has two full sentences for each reason, which fit in a table', () => {
    for (const { area, entries } of entryGroups) {
      for (const [reason, sentences] of Object.entries(entries)) {
        for (const sentence of sentences) {
          assert.match(sentence, /^[^|\n]+\.$/, `${area}: ${reason}`)
        }
      }
    }
  })
})

describe('the page', () => {
  const page = renderErrorsPage(catalogue.faults, entryGroups)

  test('is up to date', async () => {
    assert.equal(await compareErrorsPage(), undefined)
  })

  test('shows the statuses that clients get', () => {
    assert.match(page, /^\| `disk_full` \| 507 \| The disk of the node/m)
    assert.match(page, /^\| `disk_full` \| 507 \| `resource_exhausted` \| The disk of the sandbox/m)
    assert.match(page, /^\| `sandbox_paused` \| 404, 409 \|/m)
    assert.match(page, /^\| `internal_server_error` \| 500 \|/m)
    assert.match(page, /^\| `team_banned` \| 403 \|/m)
    assert.match(page, /^\| `link_loop` \| 409 \| `failed_precondition` \|/m)
    assert.match(page, /^\| `port_closed` \| 502 \|/m)
    assert.match(page, /^\| `wake_forbidden` \| 403 \|/m)
    assert.match(page, /^\| `terminal_input` \| 429 \|/m)
  })

  test('lists the reasons that are sent in a table of their own', () => {
    const [, sent = ''] = /sent as `error_code`\n\n([^#]*)/.exec(page) ?? []
    assert.match(sent, /`sandbox_paused`/)
    assert.doesNotMatch(sent, /`node_busy`/)
    assert.equal(page.match(/^\| `sandbox_placement_timeout` /gm)?.length, 1)
  })
})

function problemsWith(changed: ReadonlyMap<string, string>, groups = entryGroups) {
  return readCatalogue(changed, groups).problems
}
