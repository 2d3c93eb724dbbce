import assert from 'node:assert/strict'
import { readFile, statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { run } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import { atoll, install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { serverErrors } from '../server-errors.ts'
import { runtimes, shell } from '../shell.ts'
import { makeFileSystem } from './small-file-system.ts'
import type { SmallFileSystem } from './small-file-system.ts'

/**
 * Appends blocks that differ, each with its own `fsync`, without end. Counts acknowledged blocks in memory, which a full
 * disk does not affect. On ENOSPC it retries the same block.
 */
const writer = `
import errno, hashlib, os, time
def block(i): return hashlib.sha256(b'%d' % i).digest() * 32768
fd = os.open('/root/data', os.O_CREAT | os.O_RDWR)
acked = full = failed = 0
while True:
    try:
        n = os.pwrite(fd, block(acked), acked << 20)
        assert n == 1 << 20, n
        os.fsync(fd)
        acked += 1
    except (OSError, AssertionError) as e:
        if isinstance(e, AssertionError) or e.errno == errno.ENOSPC: full += 1
        else: failed = e.errno
        time.sleep(0.05)
    with open('/dev/shm/state.next', 'w') as f: f.write('%d %d %d' % (acked, full, failed))
    os.rename('/dev/shm/state.next', '/dev/shm/state')
`
/** Writes as fast as possible, without fsync. */
const flooder = `
while :; do dd if=/dev/urandom of=/root/flood bs=1M oflag=append conv=notrunc; sleep 0.05; done
`
/** Creates and deletes large files. */
const churner = `
while :; do
  fallocate -l 100M /root/reserved; head -c 150M /dev/zero > /root/big
  rm -f /root/reserved; head -c 100M /dev/zero > /root/other; rm -f /root/big /root/other
done
`
const checker = `
import hashlib, sys
def block(i): return hashlib.sha256(b'%d' % i).digest() * 32768
acked = int(open('/dev/shm/state').read().split()[0])
with open('/root/data', 'rb') as f:
    lost = [i for i in range(acked) if f.read(1 << 20) != block(i)]
print(acked, len(lost))
`

for (const runtime of runtimes) {
  describe(`a full disk, under ${runtime}`, { concurrency: 1 }, () => {
    let fileSystem: SmallFileSystem
    let installation: Installation
    let writers: Sandbox[]
    let bystander: Sandbox

    const createSandbox = () =>
      Sandbox.create('base', { ...installation.connection, timeoutMs: 3_600_000 })
    const start = (sandbox: Sandbox, command: string) =>
      sandbox.commands.run(command, { background: true, timeoutMs: 0, user: 'root' })
    const stateOf = async (sandbox: Sandbox) => {
      const { stdout } = await shell(sandbox, 'cat /dev/shm/state || echo 0 0 0')
      const [acked = 0, full = 0, failed = 0] = stdout.trim().split(' ').map(Number)
      return { acked, full, failed }
    }
    const freeBytes = async () => {
      const { bavail, bsize } = await statfs(fileSystem.dir)
      return bavail * bsize
    }
    /** Returns how many acknowledged blocks are lost. Reads from the disk, not from the page cache. */
    const lostBlocks = async (sandbox: Sandbox) => {
      await run('sync', ['-f', fileSystem.dir])
      await writeFile('/proc/sys/vm/drop_caches', '3')
      const { stdout, stderr } = await shell(sandbox, `python3 -c "${checker}"`, {
        timeoutMs: 600_000,
      })
      const [acked = 0, lost] = stdout.trim().split(' ').map(Number)
      assert.ok(acked > 0, stderr)
      return lost
    }

    before(async () => {
      fileSystem = await makeFileSystem(3 * 1024)
      installation = await install({
        ATOLL_DATA_DIR: fileSystem.dir,
        ATOLL_RUNTIME: runtime,
        ATOLL_BASE_MEMORY_MB: '256',
      })
      bystander = await createSandbox()
      writers = await Promise.all([createSandbox(), createSandbox(), createSandbox()])
    })
    after(async () => {
      await installation?.[Symbol.asyncDispose]()
      await fileSystem?.[Symbol.asyncDispose]()
    })

    test('gives sandboxes ENOSPC and loses no acknowledged write', async () => {
      const [first, second, third] = writers
      assert.ok(first && second && third)
      await start(first, `python3 -c "${writer}"`)
      await start(second, flooder)
      await start(third, churner)
      await waitFor('the disk to be full', async () => (await stateOf(first)).full > 20, {
        timeoutMs: 600_000,
        intervalMs: 500,
      })
      assert.ok((await freeBytes()) > 100 * 1024 ** 2, `${await freeBytes()} bytes are free`)
      assert.equal((await stateOf(first)).failed, 0)
      assert.equal(await lostBlocks(first), 0)
    })

    test('leaves the server and other sandboxes working', async () => {
      assert.equal((await fetch(`${installation.url}/health`)).status, 200)
      const script =
        'head -c 20M /dev/urandom > /root/own && sync /root/own && sha256sum < /root/own'
      assert.equal((await shell(bystander, script)).code, 0)
    })

    test('refuses new sandboxes with the reason', async () => {
      const refusal = await waitFor(
        'a refusal',
        // Space that another sandbox has just freed may be enough for one more.
        () =>
          createSandbox().then(
            async (sandbox) => (await sandbox.kill()) && undefined,
            (error: unknown) => String(error),
          ),
        { timeoutMs: 600_000, intervalMs: 200 },
      )
      assert.match(
        refusal,
        /507.*Not enough disk space on the node: (creating a sandbox needs|it ran out)/s,
        `${refusal}\n${await serverErrors(fileSystem.dir)}`,
      )
      const status = await run(atoll, ['status'], { env: installation.env })
      assert.match(status, /problem +(disk space is scarce|the disk is full)/)
    })

    test('survives kill -9 of the server', async () => {
      await installation.crash()
      await installation.start()
      const [first] = writers
      assert.ok(first)
      const { acked, failed } = await stateOf(first)
      assert.deepEqual([acked > 0, failed], [true, 0])
      assert.equal((await shell(bystander, 'echo here')).stdout, 'here\n')
    })

    test('lets sandboxes be deleted, and the others continue to write', async () => {
      const [first, second, third] = writers
      assert.ok(first && second && third)
      const stateBefore = await stateOf(first)
      await second.kill()
      await waitFor(
        'the writer to continue',
        async () => (await stateOf(first)).acked > stateBefore.acked + 20,
        {
          timeoutMs: 600_000,
          intervalMs: 250,
        },
      )
      await third.kill()
      const newSandbox = await createSandbox()
      assert.equal((await shell(newSandbox, 'echo new')).stdout, 'new\n')
      await newSandbox.kill()
      await shell(first, 'pkill -f /root/data')
      assert.equal(await lostBlocks(first), 0)
      assert.equal((await stateOf(first)).failed, 0)
    })

    test('returns the space that a sandbox frees', async () => {
      const [first] = writers
      assert.ok(first)
      const writes = async (size: string) =>
        (await shell(bystander, `head -c ${size} /dev/zero > /root/more`)).code === 0
      const polling = { timeoutMs: 600_000, intervalMs: 500 }
      // The space of the sandboxes that were killed may come back between the two writes.
      await waitFor(
        'the first sandbox to take all space',
        async () => {
          await shell(first, 'cat /dev/zero >> /root/data')
          return !(await writes('200M'))
        },
        polling,
      )
      await shell(first, 'rm /root/data')
      await waitFor('unused blocks to be given back', () => writes('1G'), polling)
    })

    test('lets the server start although other programs filled the disk to the last block', async () => {
      await installation.crash()
      await run('sh', ['-c', 'dd if=/dev/zero of="$0" bs=1M || :', join(fileSystem.dir, 'filler')])
      await installation.start()
      assert.match(await readFile(join(fileSystem.dir, 'logs/server.log'), 'utf8'), /disk full/)
      assert.equal(await bystander.kill(), true)
    })
  })
}
