import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { test } from 'node:test'
import { parseControllers } from './cgroup-controllers.ts'
import { checkKernel, formatFindings, parseVersion, runDoctor } from './doctor.ts'
import { readHostPackages } from './host-packages.mjs'

test('on this machine, where the tests run, nothing is missing', async () => {
  const findings = await runDoctor({ PATH: '/usr/bin', ATOLL_DATA_DIR: `${tmpdir()}/none/yet` })
  assert.deepEqual(
    findings.filter(({ state }) => state === 'missing'),
    [],
  )
  const names = findings.map(({ name }) => name)
  const programs = readHostPackages().map(({ binary }) => binary)
  for (const name of [...programs, 'gVisor', 'overlayfs', 'nftables', 'cgroups', 'disk space']) {
    assert.ok(names.includes(name), `${name} was not looked at`)
  }
})

test('each thing has a line, and what is not right a second one', () => {
  const text = formatFindings([
    { name: 'runc', state: 'ok', detail: '1.1.5' },
    { name: 'nftables', state: 'missing', detail: 'no such module', fix: 'modprobe nf_tables' },
  ])
  assert.equal(
    text,
    `ok       runc      1.1.5
missing  nftables  no such module
         fix: modprobe nf_tables

1 needed: see the fix lines above.`,
  )
})

test('colours mark the state only when asked for', () => {
  const findings = [{ name: 'runc', state: 'ok', detail: '' }] as const
  const marked = [true, false].map((color) => formatFindings(findings, { color }).startsWith('ok'))
  assert.deepEqual(marked, [false, true])
  assert.ok(formatFindings(findings, { color: true }).startsWith('\u001b[32mok'))
})

for (const [version, state] of [
  ['6.18.44-cloud', 'ok'],
  ['5.19.0', 'ok'],
  ['5.10.0-30-amd64', 'warn'],
] as const) {
  test(`kernel ${version} is ${state}`, () => assert.equal(checkKernel(version).state, state))
}

for (const [text, version] of [
  ['runsc version 0.0~20240729.0\nspec: 1.0.2', '0.0~20240729.0'],
  ['runsc version release-20250421.0', '20250421.0'],
  ['nftables v1.0.6 (Lester Gooch #5)', '1.0.6'],
  ['ip utility, iproute2-6.1.0, libbpf 1.1.2', '6.1.0'],
  ['mke2fs 1.47.0 (5-Feb-2023)', '1.47.0'],
  ['nothing here', undefined],
] as const) {
  test(`the version in "${text}" is ${version}`, () => assert.equal(parseVersion(text), version))
}

test('controllers of the first cgroup version are found in the mounts', () => {
  const mounts = `30 24 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
31 24 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
32 24 0:28 / /sys/fs/cgroup/memory rw - cgroup memory rw,memory`
  const expected = new Set(['rw', 'cpu', 'cpuacct', 'memory'])
  assert.deepEqual(parseControllers(mounts), expected)
})
