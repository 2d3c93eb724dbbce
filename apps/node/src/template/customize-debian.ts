import { chmod, copyFile, cp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '@atoll/kit/run'

/** Installs npm into a folder, without the host's npm configuration. */
export async function fetchNpm(prefix: string, version: string, signal?: AbortSignal) {
  await run(
    'npm',
    ['install', '--global', '--prefix', prefix, '--ignore-scripts', '--no-audit', `npm@${version}`],
    { cwd: '/', timeoutMs: 180_000, ...(signal && { signal }) },
  )
  const npm = join(prefix, 'lib/node_modules/npm')
  for (const manual of ['man', 'docs'])
    await rm(join(npm, manual), { recursive: true, force: true })
}

export interface Customization {
  readonly nodeBinary: string
  /** Folder filled by `fetchNpm`. */
  readonly npmPrefix: string
  readonly user: { readonly name: string; readonly id: number }
  /** Shell command that the user must be able to run. */
  readonly check: string
}

/** Turns a bare Debian into a template: adds Node.js and the user, removes all traces of this machine. */
export async function customizeDebian(
  root: string,
  { nodeBinary, npmPrefix, user, check }: Customization,
) {
  await copyFile(nodeBinary, join(root, 'usr/local/bin/node'))
  await chmod(join(root, 'usr/local/bin/node'), 0o755)
  await cp(npmPrefix, join(root, 'usr/local'), { recursive: true, verbatimSymlinks: true })
  await addUser(root, user)
  await speedUpLogin(join(root, 'etc/profile'))
  await checkCommandOfUser(root, user.name, check)
  await removeHostTraces(root)
}

async function addUser(root: string, { name, id }: Customization['user']): Promise<void> {
  await run('chroot', [root, 'groupadd', '--gid', `${id}`, name])
  await run('chroot', [
    ...[root, 'useradd', '--uid', `${id}`, '--gid', name, '--groups', 'sudo'],
    ...['--create-home', '--shell', '/bin/bash', name],
  ])
  const rule = join(root, 'etc/sudoers.d', name)
  await writeFile(rule, `${name} ALL=(ALL:ALL) NOPASSWD:ALL\n`)
  await chmod(rule, 0o440)
}

/**
 * Replaces `id -u` in Debian's profile by a variable that bash sets. Clients run each command in a login shell, and
 * under gVisor starting a program takes as long as all the rest of such a command.
 */
async function speedUpLogin(profile: string): Promise<void> {
  const text = await readFile(profile, 'utf8')
  await writeFile(profile, text.replaceAll('"$(id -u)"', '"${EUID:-$(id -u)}"'))
}

/** Removes host-specific files. Leaves empty files as mount points for those of the sandbox. */
async function removeHostTraces(root: string): Promise<void> {
  for (const name of ['machine-id', 'hostname', 'resolv.conf']) {
    await rm(join(root, 'etc', name), { force: true })
    await writeFile(join(root, 'etc', name), '', { mode: name === 'machine-id' ? 0o444 : 0o644 })
  }
  await writeFile(join(root, 'etc/hosts'), '127.0.0.1 localhost\n::1 localhost ip6-localhost\n')
  for (const folder of leftovers) await emptyFolder(join(root, folder))
}

const leftovers = [
  'run/sudo',
  'tmp',
  'var/cache/apt',
  'var/cache/debconf',
  'var/lib/apt/lists',
  'var/lib/sudo',
  'var/log',
]

async function emptyFolder(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    await rm(join(folder, name), { recursive: true })
  }
}

const checkLimitMs = 120_000

async function checkCommandOfUser(root: string, user: string, check: string): Promise<void> {
  const command = [
    ...[root, 'env', '--ignore-environment', 'PATH=/usr/local/bin:/usr/bin:/bin', 'HOME=/tmp'],
    ...['setpriv', `--reuid=${user}`, `--regid=${user}`, '--init-groups'],
    ...['sh', '-c', check],
  ]
  await run('chroot', command, { timeoutMs: checkLimitMs })
  await rm(join(root, 'home', user, '.sudo_as_admin_successful'), { force: true })
}
