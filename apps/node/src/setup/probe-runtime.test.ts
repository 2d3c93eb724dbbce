import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { test } from 'node:test'
import { probeGvisor, probeRunc } from './probe-runtime.ts'

const leftovers = async () =>
  (await readdir(tmpdir())).filter((name) => name.startsWith('atoll-probe-'))

for (const [name, probe] of Object.entries({ gVisor: probeGvisor, runc: probeRunc })) {
  test(`${name} runs a program here, and the probe leaves nothing`, async () => {
    const before = await leftovers()
    assert.equal(await probe(), undefined)
    assert.deepEqual(await leftovers(), before)
  })
}
