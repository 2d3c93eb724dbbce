import assert from 'node:assert/strict'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  missingHostPackages,
  neededHostPackages,
  parseRunscVersion,
  readHostPackages,
} from './host-packages.mjs'
import { parseOsRelease } from '../debian/os-release.mjs'

async function setup(programs: Record<string, string>) {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-path-'))
  for (const [name, script] of Object.entries(programs)) {
    await writeFile(join(dir, name), `#!/bin/sh\n${script}\n`)
    await chmod(join(dir, name), 0o755)
  }
  const packages = [
    { name: 'runsc', binary: 'runsc', reason: 'a' },
    { name: 'iproute2', binary: 'ip', reason: 'b' },
  ]
  return {
    missing: () => missingHostPackages(packages, dir).map(({ name }) => name),
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true }),
  }
}

test('absent programs name their packages', async () => {
  await using machine = await setup({})
  assert.deepEqual(machine.missing(), ['runsc', 'iproute2'])
})

test('a runsc that cannot checkpoint counts as missing', async () => {
  await using machine = await setup({ ip: 'true', runsc: 'echo runsc version 0.0~20221219.0' })
  assert.deepEqual(machine.missing(), ['runsc'])
})

test('a new enough runsc of either packaging is enough', async () => {
  await using debian = await setup({ ip: 'true', runsc: 'echo runsc version 0.0~20240729.0' })
  await using upstream = await setup({ ip: 'true', runsc: 'echo runsc version release-20250421.0' })
  assert.deepEqual([debian.missing(), upstream.missing()], [[], []])
})

test('runsc is not needed as a package where ATOLL_RUNSC names one', () => {
  const others = readHostPackages().filter(({ name }) => name !== 'runsc')
  assert.deepEqual(neededHostPackages({ ATOLL_RUNSC: '/opt/runsc' }), others)
  assert.deepEqual(neededHostPackages({}), readHostPackages())
})

test('a version without a date is none', () => {
  assert.equal(parseRunscVersion('runsc version VERSION_MISSING'), undefined)
})

test('every listed package says which program proves it and why it is needed', () => {
  const packages = readHostPackages()
  assert.ok(packages.length >= 8)
  for (const { name, binary, reason } of packages) assert.ok(name && binary && reason, name)
})

for (const [text, family] of [
  ['ID=debian\nVERSION_CODENAME=bookworm\n', 'debian'],
  ['ID=ubuntu\nID_LIKE=debian\n', 'derivative'],
  ['ID=linuxmint\nID_LIKE="ubuntu debian"\n', 'derivative'],
  ['ID=fedora\n', 'other'],
  ['ID=rocky\nID_LIKE="rhel centos fedora"\n', 'other'],
  ['', 'other'],
] as const) {
  test(`os-release ${JSON.stringify(text)} is ${family}`, () => {
    assert.equal(parseOsRelease(text).family, family)
  })
}
