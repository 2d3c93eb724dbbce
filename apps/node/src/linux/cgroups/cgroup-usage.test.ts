import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findCounters, openCgroupUsage, parseCpu, parseMemory } from './cgroup-usage.ts'

const unified = '41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw'

const layouts = {
  'version 1 beside an empty version 2': {
    mountinfo: [
      '31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755',
      '33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct',
      '35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory',
      '40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd',
      unified,
    ],
    cpu: { version: 'v1', root: '/sys/fs/cgroup/cpu,cpuacct' },
    memory: { version: 'v1', root: '/sys/fs/cgroup/memory' },
  },
  'version 2 alone': {
    mountinfo: ['30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate'],
    cpu: { version: 'v2', root: '/sys/fs/cgroup' },
    memory: { version: 'v2', root: '/sys/fs/cgroup' },
  },
  'one controller in each version': {
    mountinfo: [
      '33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct',
      unified,
    ],
    cpu: { version: 'v1', root: '/sys/fs/cgroup/cpuacct' },
    memory: { version: 'v2', root: '/sys/fs/cgroup/unified' },
  },
} as const

for (const [name, { mountinfo, ...counters }] of Object.entries(layouts)) {
  test(`counters are found with ${name}`, () => {
    assert.deepEqual(findCounters(mountinfo.join('\n')), counters)
  })
}

test('a machine without control groups fails with a message that says so', () => {
  assert.throws(() => findCounters(''), /no control groups that count cpuacct/)
})

test('CPU time is nanoseconds in version 1 and microseconds in version 2', () => {
  assert.equal(parseCpu('v1', '12345678901234567\n'), 12_345_678_901_234_567n)
  assert.equal(parseCpu('v2', 'usage_usec 1500\nuser_usec 1000\nsystem_usec 500\n'), 1_500_000n)
  assert.throws(() => parseCpu('v2', 'user_usec 1000\n'), /usage_usec/)
})

const memory = [
  ['files are cache', 1000, 300, 0, 700, 300],
  ['shared memory is none, though the kernel counts it among files', 1000, 300, 200, 900, 100],
  ['numbers that are not of one moment stay possible', 100, 300, 0, 0, 100],
  ['also the other way round', 1000, 200, 300, 1000, 0],
] as const

for (const [name, usage, files, shared, used, cache] of memory) {
  test(`memory: ${name}`, () => {
    const expected = { memoryUsedBytes: BigInt(used), memoryCacheBytes: BigInt(cache) }
    const v1 = `cache 1\nshmem 1\ntotal_cache ${files}\ntotal_shmem ${shared}\n`
    assert.deepEqual(parseMemory('v1', `${usage}\n`, v1), expected)
    const v2 = `anon 5\nfile ${files}\nkernel 2\nshmem ${shared}\nfile_mapped 7\n`
    assert.deepEqual(parseMemory('v2', `${usage}\n`, v2), expected)
  })
}

test('a group that does not exist has no usage', async () => {
  const { read } = await openCgroupUsage('atoll-of-nobody')
  assert.equal(await read('inothing'), undefined)
})
