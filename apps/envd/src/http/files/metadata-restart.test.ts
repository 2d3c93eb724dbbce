import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { filesOf } from '../../testing/filesystem-client.ts'
import { accessToken, runEnvd } from '../../testing/running-envd.ts'

test('a restarted envd has loaded the metadata of all files before it serves', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-files-'))
  const first = await runEnvd({ withoutAttributes: true })
  const upload = async (n: number) => {
    const path = encodeURIComponent(join(folder, `${n}`))
    const headers = {
      'x-access-token': accessToken,
      'content-type': 'application/octet-stream',
      'x-metadata-number': `${n}`,
    }
    const url = `${first.url}/files?path=${path}&username=root`
    const { status } = await fetch(url, { method: 'POST', headers, body: 'x' })
    assert.equal(status, 200)
  }
  for (let n = 0; n < 100; n += 1) await upload(n)
  await using second = await first.restart()
  const { entry } = await filesOf(second).stat({ path: join(folder, '99') })
  assert.deepEqual(entry?.metadata, { number: '99' })
  await rm(folder, { recursive: true })
})
