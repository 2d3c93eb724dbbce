/** Commands of the guest program that the node runs on the host. They need root and loop devices. */
import assert from 'node:assert/strict'
import { mkdir, truncate, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { run, tryRun } from '@atoll/kit/run'
import { buildGuest, type Guest } from './test-sandbox.ts'

let guest: Guest
before(async () => {
  guest = await buildGuest()
})
after(() => guest[Symbol.asyncDispose]())

/** Mounts a disk twice in a private namespace, and shows what a sandbox would see. */
const mountTwice = `
cd "$1"; shift
mount() { "$0" rootfs disk.img disk "$PWD/rootfs" "$PWD/upper-layer:$PWD/layer" "$@"; }
mount 61000 first 'nameserver 192.0.2.1'
cd rootfs
cat etc/hostname etc/resolv.conf file
stat -c '%n %a %u:%g' . etc etc/hosts tmp tmp/.X11-unix
echo kept > etc/hostname
cd ..
flock --nonblock disk.img echo free || echo locked
umount rootfs disk
mount 0 second 'nameserver 192.0.2.2'
cat rootfs/etc/hostname rootfs/etc/resolv.conf
`

test('`rootfs` fills a new disk, and leaves the files of a used one alone', async () => {
  const dir = join(guest.directory, 'disk-of-sandbox')
  for (const name of ['disk', 'rootfs', 'layer', 'upper-layer']) {
    await mkdir(join(dir, name), { recursive: true })
  }
  await writeFile(join(dir, 'layer', 'file'), 'lower\n')
  await writeFile(join(dir, 'upper-layer', 'file'), 'upper\n')
  await writeFile(join(dir, 'disk.img'), '')
  await truncate(join(dir, 'disk.img'), 16 * 1024 * 1024)
  await run('mkfs.ext4', ['-q', '-F', '-O', '^has_journal', join(dir, 'disk.img')])
  const seen = await run('unshare', ['--mount', 'sh', '-euc', mountTwice, guest.program, dir])
  assert.deepEqual(seen.split('\n'), [
    'first',
    'nameserver 192.0.2.1upper',
    '. 755 61000:61000',
    'etc 755 61000:61000',
    'etc/hosts 644 61000:61000',
    'tmp 1777 61000:61000',
    'tmp/.X11-unix 1777 61000:61000',
    'locked',
    'kept',
    'nameserver 192.0.2.1',
  ])
})

test('`rootfs` reports a missing image', async () => {
  const { code, stderr } = await tryRun(guest.program, [
    ...['rootfs', '/no/such', '/', '/', '/', '0', 'name', ''],
  ])
  assert.deepEqual([code, stderr], [1, 'rootfs: /no/such: No such file or directory\n'])
})

const call = '{"arg":{"LinkAddress":"AAAAAAAA"}}'

test('`gvisor-network` sends the call with the hardware address, and takes the address off the link', async () => {
  const socketPath = join(guest.directory, 'control.sock')
  let received = ''
  await using server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('data', (bytes) => (received += String(bytes)))
    socket.on('end', () => socket.end('{"success":true,"err":""}'))
  })
  await new Promise<void>((resolve) => server.listen(socketPath, resolve))
  const script = `
ip link add eth7 address 02:00:00:00:00:07 type veth peer name eth8
ip address add 192.0.2.1/30 dev eth7
ip link set eth7 up
"$0" gvisor-network /proc/self/ns/net eth7 "$1" "$2"
ip -4 -o address show dev eth7`
  const args = ['--net', 'sh', '-euc', script, guest.program, socketPath, call]
  assert.equal(await run('unshare', args), '')
  assert.equal(received, '{"arg":{"LinkAddress":"AgAAAAAH"}}')
})

for (const { what, link, text, answer, expected } of [
  {
    what: 'a missing link',
    link: 'eth9',
    text: call,
    answer: '',
    expected: /^gvisor-network: eth9/,
  },
  { what: 'a call without an address', link: 'lo', text: '{}', answer: '', expected: /no place/ },
  {
    what: 'a refusal',
    link: 'lo',
    text: call,
    answer: '{"success":false,"err":"no"}',
    expected: /"no"/,
  },
]) {
  test(`\`gvisor-network\` reports ${what}`, async () => {
    const socketPath = join(guest.directory, 'refusing.sock')
    await using server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => {})
      socket.resume().on('end', () => socket.end(answer))
    })
    await new Promise<void>((resolve) => server.listen(socketPath, resolve))
    const command = [guest.program, 'gvisor-network', '/proc/self/ns/net', link, socketPath, text]
    const { code, stderr } = await tryRun('unshare', ['--net', ...command])
    assert.notEqual(code, 0)
    assert.match(stderr, expected)
  })
}
