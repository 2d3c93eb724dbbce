import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'
import { writeFileAtomic } from './atomic-file.ts'

const execFileAsync = promisify(execFile)

test('a file is replaced atomically and gets the requested mode', async (t) => {
  const folder = await temporaryFolder(t)
  const path = join(folder, 'record.json')
  await writeFile(path, 'old')
  await writeFileAtomic(path, 'new', 0o640)
  assert.deepEqual(
    [await readFile(path, 'utf8'), (await stat(path)).mode & 0o777, await readdir(folder)],
    ['new', 0o640, ['record.json']],
  )
})

test('a failed rename leaves no temporary file behind', async (t) => {
  const folder = await temporaryFolder(t)
  const path = join(folder, 'record.json')
  await mkdir(path)
  await assert.rejects(writeFileAtomic(path, 'new'), { code: 'EISDIR' })
  assert.deepEqual(await readdir(folder), ['record.json'])
})

test('a failed write leaves no temporary file behind', async (t) => {
  const folder = await temporaryFolder(t)
  // Limits files to 1 KiB: the write fails with EFBIG, as it would with ENOSPC on a full disk.
  const program = `
    import { writeFileAtomic } from ${JSON.stringify(import.meta.resolve('./atomic-file.ts'))}
    await writeFileAtomic(${JSON.stringify(join(folder, 'record.json'))}, 'x'.repeat(10_000)).catch(
      ({ code }) => console.log(code))`
  const node = [process.execPath, '--input-type=module', '-e', program]
  const { stdout } = await execFileAsync('bash', ['-c', 'ulimit -f 1; exec "$@"', 'bash', ...node])
  assert.equal(stdout, 'EFBIG\n')
  assert.deepEqual(await readdir(folder), [])
})

async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-atomic-file-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}
