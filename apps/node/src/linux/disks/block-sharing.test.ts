import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm, watch, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { canShareBlocks } from './block-sharing.ts'

test('the probe never creates a file that a crash could leave behind', async (t) => {
  const folder = await temporaryFolder(t)
  const watching = new AbortController()
  t.after(() => watching.abort())
  // node:fs reports a name that appears in a folder or leaves it as 'rename'.
  const first = firstRenamed(watch(folder, { signal: watching.signal }))
  await canShareBlocks(folder)
  await writeFile(join(folder, 'after-the-probe'), '')
  assert.equal(await first, 'after-the-probe')
  assert.deepEqual(await readdir(folder), ['after-the-probe'])
})

async function firstRenamed(events: ReturnType<typeof watch>): Promise<unknown> {
  for await (const { eventType, filename } of events) if (eventType === 'rename') return filename
  return undefined
}

async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-block-sharing-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}
