import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, constants, openSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { readPipe } from './pipe-reader.ts'

/** Reads a pipe that `script` writes to. */
async function setup(t: TestContext, script: string) {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-pipe-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const name = join(folder, 'pipe')
  execFileSync('mkfifo', [name])
  const fd = openSync(name, constants.O_RDONLY | constants.O_NONBLOCK)
  const writer = openSync(name, constants.O_WRONLY)
  const child = spawn('sh', ['-c', script], { stdio: ['ignore', writer, 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  closeSync(writer)
  const reader = readPipe(fd)
  t.after(() => reader.destroy())
  return reader
}

test('all output arrives, however slowly chunks are consumed', async (t) => {
  const script = 'seq 1 100; sleep 0.05; seq 101 3000000; sleep 0.05; echo end'
  const { chunks } = await setup(t, script)
  const hash = createHash('sha256')
  let count = 0
  for await (const chunk of chunks) {
    for (let turns = count++ % 4; turns > 0; turns--) await turn()
    hash.update(chunk)
  }
  const expected = execFileSync('sh', ['-c', `(${script}) | sha256sum`], { encoding: 'utf8' })
  assert.equal(hash.digest('hex'), expected.slice(0, 64))
})

test('a chunk stays valid until the next is requested', async (t) => {
  const { chunks } = await setup(t, 'i=0; while :; do seq $i $((i += 50000)); done')
  const reading = chunks[Symbol.asyncIterator]()
  for (let at = 0; at < 50; at++) {
    const { value: chunk } = await reading.next()
    const seen = Buffer.from(chunk)
    for (let turns = 0; turns < 5; turns++) await turn()
    assert.ok(seen.equals(chunk))
  }
})

test('destroying the reader ends the chunks and the writer', async (t) => {
  const { chunks, destroy } = await setup(t, 'exec yes')
  let count = 0
  for await (const _ of chunks) if (++count === 10) destroy()
  assert.ok(count >= 10)
})

test('a pipe without output yields no chunks', async (t) => {
  const { chunks } = await setup(t, 'exit 0')
  assert.deepEqual(await Array.fromAsync(chunks), [])
})
