import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { createPlatformClient } from '@atoll/client/platform'
import { Fault } from '@atoll/kit/fault'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import type { CommandHandle } from 'e2b'
import * as attempts from '../attempts.ts'
import { simulateLostReply } from './hang.ts'
import { cellOf, cgroupValue, namesOf, processesOf } from '../host-state.ts'
import type { Names } from '../host-state.ts'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { python, runtimes, shell } from '../shell.ts'

const memoryMb = 512
const diskMb = 64

for (const runtime of runtimes) {
  describe(`a sandbox under ${runtime}`, { concurrency: 1 }, () => {
    let installation: Installation
    let names: Names
    let sandbox: Sandbox
    let neighbour: Sandbox
    const createSandbox = () =>
      Sandbox.create('base', { ...installation.connection, timeoutMs: 600_000 })

    before(async () => {
      installation = await install({
        ATOLL_RUNTIME: runtime,
        ATOLL_BASE_MEMORY_MB: String(memoryMb),
        ATOLL_BASE_DISK_SIZE_MB: String(diskMb),
        ATOLL_BASE_CPU_COUNT: '1',
      })
      names = await namesOf(installation.dataDir)
      ;[sandbox, neighbour] = await Promise.all([createSandbox(), createSandbox()])
    })
    /** Returns the error of a request for an ended sandbox; undefined while the sandbox runs. */
    const errorOf = async ({ sandboxId }: Sandbox) => {
      const client = createPlatformClient({ url: installation.url, apiKey: installation.apiKey })
      return client.getSandbox(sandboxId).then(
        () => undefined,
        (error: unknown) => error,
      )
    }
    const waitForEndReason = async (victim: Sandbox) => {
      const findError = () => errorOf(victim)
      const refusal = await waitFor('the sandbox to be gone', findError)
      assert.ok(refusal instanceof Fault && refusal.kind === 'not_found')
      return refusal.message
    }
    after(() => installation?.[Symbol.asyncDispose]())

    test('sees its own processes and none of the host', async () => {
      const mark = `atoll-mark-${randomBytes(8).toString('hex')}`
      const markedProcess = spawn('sleep', ['1000'], { argv0: mark, stdio: 'ignore' })
      try {
        const onHost = await readFile(`/proc/${markedProcess.pid}/cmdline`, 'utf8')
        assert.ok(onHost.includes(mark))
        const commandLines = await python(sandbox, attempts.commandLines)
        assert.ok(Array.isArray(commandLines))
        assert.match(commandLines.join('\n'), /^1 \/\.atoll\/guest init /m)
        assert.ok(commandLines.length < 10, commandLines.join('\n'))
        assert.ok(!commandLines.join('\n').includes(mark))
      } finally {
        markedProcess.kill('SIGKILL')
      }
    })

    test('reaches no file of the host by any path', async () => {
      const dir = await mkdtemp('/var/tmp/atoll-marked-')
      try {
        await writeFile(join(dir, 'mark'), 'of the host')
        const targets = [
          dir,
          installation.dataDir,
          names.runDir,
          '/root/.bashrc',
          '/etc/machine-id',
        ]
        const reachablePaths = await python(sandbox, attempts.hostPaths, [
          targets[0],
          ...targets.slice(1, 3),
        ])
        assert.deepEqual(reachablePaths, [])
        const hostname = await shell(sandbox, 'cat /proc/1/root/etc/hostname')
        assert.equal(hostname.stdout.trim(), sandbox.sandboxId)
      } finally {
        await rm(dir, { recursive: true })
      }
    })

    test('has no disk of the host, and cannot create a device node for one', async () => {
      const devices = await shell(sandbox, 'find / -xdev -type b; find /dev -type b')
      assert.equal(devices.stdout, '')
      const usableNodes = await python(sandbox, attempts.deviceNodes)
      assert.deepEqual(usableNodes, [])
    })

    test('cannot change the files that it shares with other sandboxes', async () => {
      const digest = await digestOf(join(installation.dataDir, 'envd'))
      const { stdout } = await shell(sandbox, attempts.writesToShared)
      assert.equal(stdout, '')
      assert.equal(await digestOf(join(installation.dataDir, 'envd')), digest)
    })

    test('keeps its own secrets from the ordinary user', async () => {
      const cellId = await cellOf(installation, sandbox.sandboxId)
      const bundle = join(installation.dataDir, 'cells', cellId, 'bundle/config.json')
      const token = /ATOLL_INIT_TOKEN=([0-9a-f]+)/.exec(await readFile(bundle, 'utf8'))?.[1]
      assert.ok(token)
      const search = `cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /run/atoll/* 2>/dev/null | tr '\\0' '\\n'`
      const output = await shell(sandbox, search, { user: 'user' })
      assert.match(output.stdout, /^HOME=\/home\/user$/m)
      assert.ok(!output.stdout.includes(token))
    })

    test('has two links and one address, which the host does not have', async () => {
      const { stdout } = await shell(sandbox, 'ip -4 -o addr show')
      const addresses = [...stdout.matchAll(/^\d+: (\S+) +inet ([\d.]+)\//gm)]
      assert.deepEqual(new Set(addresses.map(([, link]) => link)), new Set(['lo', 'eth0']))
      const hostAddresses = Object.values(networkInterfaces()).flatMap((list) =>
        (list ?? []).map(({ address }) => address),
      )
      const ownAddress = addresses.find(([, link]) => link === 'eth0')?.[2] ?? ''
      assert.ok(hostAddresses.includes('127.0.0.1') && !hostAddresses.includes(ownAddress))
    })

    test('has the limits of its template in its control groups', async () => {
      const value = (...files: string[]) => cgroupValue(names, sandbox.sandboxId, files)
      assert.match(await value('cpu.max', 'cpu.cfs_quota_us'), /^100000( 100000)?$/)
      assert.equal(
        await value('memory.max', 'memory.limit_in_bytes'),
        String(memoryMb * 1024 * 1024),
      )
      assert.match(await value('pids.max'), /^\d+$/)
      assert.notDeepEqual(await processesOf(names, sandbox.sandboxId), [])
    })

    test('gets ENOSPC for a full disk, and continues', async () => {
      const fill = await shell(sandbox, 'dd if=/dev/zero of=/home/user/fill bs=1M count=1000')
      assert.notEqual(fill.code, 0)
      assert.match(fill.stderr, /No space left on device/)
      const size = Number((await shell(sandbox, 'stat -c %s /home/user/fill')).stdout)
      assert.ok(size > 0.5 * diskMb * 1024 * 1024 && size <= diskMb * 1024 * 1024, String(size))
      await assertHealthy(neighbour)
      await shell(sandbox, 'rm /home/user/fill && echo room > /home/user/again')
      assert.equal((await shell(sandbox, 'cat /home/user/again')).stdout, 'room\n')
    })

    test('gets ENOSPC for full shared memory, and continues', async () => {
      const fill = await shell(sandbox, `head -c ${memoryMb}M /dev/zero > /dev/shm/fill`)
      assert.match(fill.stderr, /No space left on device/)
      await shell(sandbox, 'rm /dev/shm/fill')
      await assertHealthy(sandbox)
    })

    const memoryPrograms = [
      ['', attempts.takeMemory],
      [' beside other threads', attempts.takeMemoryBesideThreads],
      [' in a thread', attempts.takeMemoryInThread],
    ] as const
    for (const [how, program] of memoryPrograms) {
      const name = `that takes too much memory${how} loses the process that took the memory, or ends`
      test(name, async () => {
        const victim = await createSandbox()
        const allocation = shell(victim, program).catch(() => 'ended')
        await assertHealthy(neighbour)
        const outcome = await allocation
        if (outcome === 'ended' && runtime === 'gvisor') {
          // The kernel may kill envd next, before the memory is free. envd is then restarted.
          const isHealthy = () =>
            assertHealthy(victim).then(
              () => true,
              () => false,
            )
          const isSettled = async () => (await errorOf(victim)) !== undefined || isHealthy()
          await waitFor('the sandbox to be gone, or healthy again', isSettled)
          const hasEnded = (await errorOf(victim)) !== undefined
          if (hasEnded) assert.match(await waitForEndReason(victim), /ran out of memory/)
        } else {
          assert.ok(typeof outcome === 'object' && outcome.code !== 0)
          await assertHealthy(victim)
        }
        await assertHealthy(neighbour)
        await victim.kill()
      })
    }

    // A runc sandbox has no kernel of its own that could take too much memory.
    const isKernelShared = runtime === 'runc'
    test(
      'whose kernel takes too much memory ends, and the error names the reason',
      { skip: isKernelShared },
      async () => {
        const victim = await createSandbox()
        const filling = shell(victim, `head -c ${2 * memoryMb}M /dev/zero > /dev/fill`)
        await Promise.all([assert.rejects(filling), assertHealthy(neighbour)])
        assert.match(await waitForEndReason(victim), /ran out of memory \(limit 512 MB\)/)
        await assertHealthy(neighbour)
      },
    )

    const hangCases = [
      ['', attempts.holdMemory, (holder: CommandHandle) => holder.kill()],
      // gVisor notices the failure in another thread than the waiting one.
      [' in one of several threads', attempts.keepMapping, async () => {}],
    ] as const
    for (const [where, program, requestMapping] of hangCases) {
      const name = `that hangs for lack of memory${where} ends, and the error names the reason`
      test(name, { skip: isKernelShared }, async () => {
        const victim = await createSandbox()
        const holder = await victim.commands.run(program, { background: true, timeoutMs: 0 })
        await waitFor('the memory to be taken', () => holder.stdout !== '')
        const hang = simulateLostReply(names, victim.sandboxId, 250, () => requestMapping(holder))
        assert.match(await waitForEndReason(victim), /ran out of memory \(limit 512 MB\)/)
        await Promise.all([hang, assertHealthy(neighbour)])
      })
    }

    test('that starts more and more processes is limited, and does not disturb others', async () => {
      const victim = await createSandbox()
      const bomb = python(victim, attempts.forkBomb).catch(() => 'the sandbox ended')
      await assertHealthy(neighbour)
      const outcome = await bomb
      if (runtime === 'runc') {
        assert.deepEqual(outcome, 'EAGAIN')
        await assertHealthy(victim)
      } else {
        assert.ok(
          ['EAGAIN', 'ENOMEM', 'the sandbox ended'].includes(String(outcome)),
          String(outcome),
        )
      }
      await assertHealthy(neighbour)
      await victim.kill()
    })

    test('has only processes that the kernel confines', async () => {
      const pids = await processesOf(names, sandbox.sandboxId)
      assert.notEqual(pids.length, 0)
      const hostUserNamespace = await readlink('/proc/self/ns/user')
      for (const pid of pids) {
        const status = await readFile(`/proc/${pid}/status`, 'utf8')
        assert.match(status, /^Seccomp:\t2$/m)
        assert.notEqual(await readlink(`/proc/${pid}/ns/user`), hostUserNamespace)
        if (runtime === 'gvisor') assert.match(status, /^NoNewPrivs:\t1$/m)
        else assertUnprivileged(status)
      }
    })

    if (runtime !== 'runc') return
    test('cannot make the system calls that expose the kernel', async () => {
      const allowed = await python(sandbox, attempts.systemCalls)
      assert.deepEqual(allowed, [])
    })
  })
}

/** Checks that root inside is no user of the host and cannot mount. */
function assertUnprivileged(status: string): void {
  const uids = /^Uid:\t(.*)$/m.exec(status)?.[1]?.split('\t').map(Number) ?? []
  assert.ok(uids.length === 4 && uids.every((uid) => uid >= 2_000_000_000), String(uids))
  const capabilities = BigInt(`0x${/^CapBnd:\t(.*)$/m.exec(status)?.[1]}`)
  const sysAdmin = 1n << 21n
  assert.equal(capabilities & sysAdmin, 0n)
}

async function assertHealthy(sandbox: Sandbox): Promise<void> {
  const { stdout } = await shell(sandbox, 'echo well', { user: 'user' })
  assert.equal(stdout, 'well\n')
}

/** Returns a digest of all names and contents below a folder. */
async function digestOf(dir: string): Promise<string> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true })
  const lines = entries.map(async (entry) => {
    const path = join(entry.parentPath, entry.name)
    const content = entry.isFile() ? await readFile(path) : ''
    return `${createHash('sha256').update(content).digest('hex')} ${path}`
  })
  return (await Promise.all(lines)).toSorted().join('\n')
}
