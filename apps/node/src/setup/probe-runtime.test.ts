import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { probeGvisor, probeRunc } from './probe-runtime.ts'

for (const [name, probe] of Object.entries({ gVisor: probeGvisor, runc: probeRunc })) {
  test(`${name} runs a program here, and the probe leaves nothing`, async () => {
    const dir = await mkdtemp(join(tmpdir(), 'atoll-probes-'))
    try {
      assert.equal(await probe(dir), undefined)
      assert.deepEqual(await readdir(dir), [])
    } finally {
      await rm(dir, { recursive: true })
    }
  })
}
