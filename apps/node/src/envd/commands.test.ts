import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { envdCommands } from './commands.ts'
import { envdPort } from './port.ts'

/** An address of its own, since all tests use the port of envd. */
const address = `127.${1 + (process.pid % 250)}.78.${1 + Math.floor(Math.random() * 250)}`

/** Sends a file to an envd that answers with this status before it reads the content. */
async function putToEarly(t: TestContext, status: number): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-envd-commands-'))
  t.after(() => rm(dir, { recursive: true }))
  const file = join(dir, 'file')
  await writeFile(file, Buffer.alloc(8 * 1024 ** 2))
  const server = createServer((_, response) => response.writeHead(status).end())
  t.after(() => server.close())
  server.listen(envdPort, address)
  await once(server, 'listening')
  const { signal } = new AbortController()
  await envdCommands.put({ address, accessToken: undefined }, file, '/file', signal)
}

test('an answer before the end of the file counts', async (t) => {
  await putToEarly(t, 200)
})

test('a refusal before the end of the file is reported', async (t) => {
  await assert.rejects(putToEarly(t, 507), /envd refused a file: status 507/)
})
