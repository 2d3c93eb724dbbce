import assert from 'node:assert/strict'
import { appendFile, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, suite, test } from 'node:test'
import { createRecordings, recordingLimits } from './recordings.ts'
import type { Recordings } from './recordings.ts'

const sandboxId = 'iabcdefghijklmnopqrst'
const request = { teamId: 'team-a', sandboxId, size: { cols: 80, rows: 24 }, onStopped() {} }

suite('recordings of terminals', () => {
  let folder: string
  let timeMs: number
  let recordings: Recordings
  const clock = { now: () => new Date(timeMs) }
  const open = (limits: Partial<typeof recordingLimits> = {}) =>
    createRecordings(folder, clock, { ...recordingLimits, ...limits })
  const pathOf = (id: string) => join(folder, 'team-a', `${id}.cast`)
  const linesOf = async (id: string): Promise<unknown[]> =>
    (await readFile(pathOf(id), 'utf8'))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
  const readAll = async (teamId: string, id: string) => {
    const { stream, size } = await recordings.read(teamId, id)
    const bytes = Buffer.concat(await Array.fromAsync(stream))
    assert.equal(bytes.length, size)
    return bytes.toString('utf8')
  }

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'atoll-recordings-'))
    timeMs = Date.UTC(2026, 0, 1)
    recordings = open()
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  test('a recording is an asciicast with whole characters', async () => {
    const recording = await recordings.start(request)
    timeMs += 1_500
    const [first, second] = [Buffer.from('ä').subarray(0, 1), Buffer.from('ä').subarray(1)]
    recording.write(first)
    recording.write(second)
    recording.write(Buffer.from('\u001b[2J</script>\n'))
    recording.resize({ cols: 100, rows: 30 })
    await recording.close()
    const [header, ...events] = await linesOf(recording.id)
    assert.deepEqual(header, {
      version: 2,
      width: 80,
      height: 24,
      timestamp: Date.UTC(2026, 0, 1) / 1_000,
      title: `sandbox ${sandboxId}`,
      env: { TERM: 'xterm-256color', SHELL: '/bin/bash' },
    })
    assert.deepEqual(events, [
      [1.5, 'o', 'ä'],
      [1.5, 'o', '\u001b[2J</script>\n'],
      [1.5, 'r', '100x30'],
    ])
  })

  test('a recording continues after a crash that cut its last line', async () => {
    const { id, ...crashed } = await recordings.start(request)
    crashed.write(Buffer.from('one'))
    await crashed.close()
    await appendFile(pathOf(id), '[1,"o","cut')
    assert.doesNotMatch(await readAll('team-a', id), /cut/)
    recordings = open()
    timeMs += 60_000
    const again = await recordings.start({ ...request, id })
    again.write(Buffer.from('two'))
    await again.close()
    assert.deepEqual((await linesOf(id)).slice(1), [
      [0, 'o', 'one'],
      [60, 'o', 'two'],
    ])
  })

  test('a recording of another team or sandbox looks absent', async () => {
    const { id, ...recording } = await recordings.start(request)
    await recording.close()
    const absent = /no such recording/
    await assert.rejects(recordings.read('team-b', id), absent)
    await assert.rejects(recordings.remove('team-b', id), absent)
    await assert.rejects(recordings.start({ ...request, teamId: 'team-b', id }), absent)
    await assert.rejects(recordings.start({ ...request, sandboxId: 'iother', id }), absent)
    for (const other of ['../team-a/x', '..', '', `${id}/..`]) {
      await assert.rejects(recordings.read('team-a', other), absent)
      await assert.rejects(recordings.list(`../${other}`), absent)
    }
    assert.deepEqual(await recordings.list('team-b'), [])
    assert.equal((await recordings.list('team-a')).length, 1)
  })

  test('a recording ends at its limit, and says so once', async () => {
    recordings = open({ maxBytes: 1_000 })
    const reasons: string[] = []
    const recording = await recordings.start({ ...request, onStopped: (why) => reasons.push(why) })
    for (let index = 0; index < 5; index += 1) recording.write(Buffer.alloc(600, 'a'))
    await recording.close()
    assert.equal(reasons.length, 1)
    assert.match(reasons[0] ?? '', /limit/)
    assert.ok((await readFile(pathOf(recording.id))).length <= 1_000)
  })

  test('a team has limits, and a deleted recording makes room', async () => {
    recordings = open({ maxTeamRecordings: 2 })
    const ids: string[] = []
    for (let index = 0; index < 2; index += 1) {
      const recording = await recordings.start(request)
      ids.push(recording.id)
      await recording.close()
    }
    await assert.rejects(recordings.start(request), /Delete some/)
    await (await recordings.start({ ...request, teamId: 'team-b' })).close()
    await recordings.remove('team-a', ids[0] ?? '')
    await (await recordings.start(request)).close()
    recordings = open({ maxTeamBytes: 100 })
    await assert.rejects(recordings.start(request), /Delete some/)
  })

  test('old recordings are removed, but nothing else', async () => {
    const old = await recordings.start(request)
    await old.close()
    const kept = await recordings.start(request)
    const strange = join(folder, 'team-a', 'notes.cast')
    await writeFile(strange, 'x')
    const past = new Date(timeMs - 31 * 24 * 60 * 60 * 1_000)
    for (const path of [pathOf(old.id), pathOf(kept.id), strange]) await utimes(path, past, past)
    await recordings.collect()
    const names = await readdir(join(folder, 'team-a'))
    assert.deepEqual(names.toSorted(), [`${kept.id}.cast`, 'notes.cast'].toSorted())
    await kept.close()
  })
})
