/** `atoll doctor`: checks whether this machine has what Atoll needs, and prints how to fix problems. */
import { readFile, statfs } from 'node:fs/promises'
import { release, tmpdir } from 'node:os'
import { dirname } from 'node:path'
import { tryRun } from '@atoll/kit/run'
import { loadNodeConfig } from '../config.ts'
import { parseOsRelease } from '../debian/os-release.mjs'
import { findQuarantined } from '../state/quarantined.ts'
import { findControllers } from './cgroup-controllers.ts'
import {
  findBinary,
  minimumRunscVersion,
  parseRunscVersion,
  readHostPackages,
  systemPath,
} from './host-packages.mjs'
import { checkSavedMemory } from './check-saved-memory.ts'
import { checkRunsc, runscFix } from './check-runsc.ts'
import { probeKernel } from './probe-kernel.ts'
import { probeGvisor, probeRunc } from './probe-runtime.ts'
import { releaseOf } from './runtime-release.ts'
import type { StatsFs } from 'node:fs'
import type { NodeConfig } from '../config.ts'
import type { Finding } from './finding.ts'
import type { HostPackage } from './host-packages.mjs'

export { formatFindings } from './finding.ts'
export type { Finding } from './finding.ts'

const setUp = 'node tools/prepare.mjs'
const neededDiskBytes = 5 * 1024 ** 3
/** Headroom: the base template alone takes 20,000 inodes. */
const neededInodes = 100_000

/** Runs all checks without changing anything. `environment` is the server's environment. */
export async function runDoctor(
  environment: Record<string, string | undefined>,
): Promise<Finding[]> {
  const path = systemPath(environment['PATH'])
  const config = loadNodeConfig(environment)
  const { ATOLL_DATA_DIR: dataDir, ATOLL_RUNSC: runsc } = config
  const isRoot = process.getuid?.() === 0
  const packages = await Promise.all(
    readHostPackages().map((item) =>
      item.binary === 'runsc' && runsc !== undefined
        ? checkChosenRunsc(item, runsc)
        : checkPackage(item, path),
    ),
  )
  return [
    await checkSystem(),
    checkKernel(release()),
    { name: 'Node.js', state: 'ok', detail: process.version },
    checkRoot(isRoot),
    ...packages,
    ...(isRoot ? await probeHost(packages, config) : []),
    await checkCgroups(),
    await checkForwarding(),
    await checkDiskSpace(dataDir),
    ...(await checkRecords(dataDir)),
    ...(await checkMemory(packages, dataDir, runsc)),
  ]
}

async function checkSystem(): Promise<Finding> {
  const os = parseOsRelease(await readFile('/etc/os-release', 'utf8'))
  const name = 'system'
  if (os.family === 'debian') return { name, state: 'ok', detail: os.name }
  return { name, state: 'warn', detail: `${os.name}; Atoll is made for Debian 12 and newer` }
}

/** Checks the kernel: overlayfs supports idmapped layers since 5.19. runc sandboxes need them, gVisor does not. */
export function checkKernel(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const name = 'kernel'
  if (major > 5 || (major === 5 && minor >= 19)) return { name, state: 'ok', detail: version }
  return {
    name,
    state: 'warn',
    detail: `${version}: runc sandboxes need 5.19 for idmapped layers; gVisor works`,
    fix: 'apt-get install linux-image-amd64, then restart the machine',
  }
}

function checkRoot(isRoot: boolean): Finding {
  if (isRoot) return { name: 'root', state: 'ok', detail: 'yes' }
  const detail = 'no: Atoll makes namespaces and mounts, and only root may try them out'
  return { name: 'root', state: 'missing', detail, fix: 'sudo bin/atoll doctor' }
}

async function checkPackage(item: HostPackage, path: string): Promise<Finding> {
  const fix = `${setUp}   (or: apt-get install ${item.name})`
  const file = findBinary(item.binary, path)
  if (file === undefined) {
    return { name: item.binary, state: 'missing', detail: `absent: ${item.reason}`, fix }
  }
  const { stdout, stderr } = await tryRun(file, [item.versionFlag ?? '--version'])
  const version = parseVersion(stdout) ?? parseVersion(stderr) ?? 'of unknown version'
  const detail = `${version}: ${item.reason}`
  if (item.binary === 'runsc' && (parseRunscVersion(version) ?? 0) < minimumRunscVersion) {
    const tooOld = `${version} cannot checkpoint; ${minimumRunscVersion} or newer is needed`
    return { name: item.binary, state: 'missing', detail: tooOld, fix: setUp }
  }
  return { name: item.binary, state: 'ok', detail }
}

/** Checks the runsc that ATOLL_RUNSC names. */
async function checkChosenRunsc(
  { binary: name, reason }: HostPackage,
  file: string,
): Promise<Finding> {
  const wrong = await checkRunsc(file)
  if (wrong !== undefined) return { name, state: 'missing', detail: wrong, fix: runscFix }
  const version = parseVersion(await releaseOf(file)())
  return { name, state: 'ok', detail: `${version} at ${file}: ${reason}` }
}

/** Returns the first number at the start of a word or after a hyphen, with or without a leading "v". */
export function parseVersion(text: string): string | undefined {
  return /(?:^|[\s-])v?(\d[\w.~+-]*)/.exec(text)?.[1]
}

async function probeHost(
  packages: readonly Finding[],
  { ATOLL_RUNTIME: runtime, ATOLL_RUNSC: runsc }: NodeConfig,
): Promise<Finding[]> {
  const [gvisor, runc, kernel] = await Promise.all([
    isPresent(packages, 'runsc') ? probeGvisor(tmpdir(), runsc) : 'runsc is missing',
    isPresent(packages, 'runc') ? probeRunc() : 'runc is missing',
    probeKernel(),
  ])
  return [
    toRuntimeFinding('gVisor', gvisor, {
      needed: runtime !== 'runc',
      fix: 'ATOLL_RUNTIME=runc for trusted code, or another machine',
    }),
    toRuntimeFinding('runc sandboxes', runc, {
      needed: runtime === 'runc',
      fix: 'ATOLL_RUNTIME=gvisor, which is the default',
    }),
    ...kernel,
  ]
}

function isPresent(packages: readonly Finding[], binary: string): boolean {
  return packages.some(({ name, state }) => name === binary && state === 'ok')
}

function toRuntimeFinding(
  name: string,
  wrong: string | undefined,
  { needed, fix }: { readonly needed: boolean; readonly fix: string },
): Finding {
  if (wrong === undefined) return { name, state: 'ok', detail: 'ran a program' }
  return { name, state: needed ? 'missing' : 'warn', detail: wrong, fix }
}

async function checkCgroups(): Promise<Finding> {
  const { version, controllers } = await findControllers()
  const absent = ['cpu', 'memory', 'pids'].filter((controller) => !controllers.has(controller))
  const name = 'cgroups'
  if (absent.length === 0) return { name, state: 'ok', detail: `${version}: cpu, memory, pids` }
  return {
    name,
    state: 'missing',
    detail: `${version} without ${absent.join(', ')}: sandboxes would have no limits`,
    fix: 'add cgroup_enable=memory to the kernel command line, then restart the machine',
  }
}

async function checkForwarding(): Promise<Finding> {
  const on = (await readFile('/proc/sys/net/ipv4/ip_forward', 'utf8')).trim() === '1'
  const detail = on ? 'on' : 'off; switched on when the node starts'
  return { name: 'IP forwarding', state: 'ok', detail }
}

/** Returns one finding per unreadable record, or a single "ok" finding. */
async function checkRecords(dataDir: string): Promise<Finding[]> {
  const quarantined = await findQuarantined(dataDir).catch((error: NodeJS.ErrnoException) => error)
  if (quarantined instanceof Error) {
    const detail = `not checked: ${quarantined.code ?? quarantined.message}`
    return [{ name: 'records', state: 'warn', detail, fix: 'sudo bin/atoll doctor' }]
  }
  if (quarantined.length === 0) return [{ name: 'records', state: 'ok', detail: 'all readable' }]
  return quarantined.map(({ kind, path, reason }) => ({
    name: 'records',
    state: 'warn',
    detail: `${kind} ${path} cannot be read: ${reason}`,
    fix: `start the newer release that wrote it, restore it from a backup, or remove ${path} if you do not need it`,
  }))
}

/** Returns no finding when the check cannot run; another finding gives the reason. */
async function checkMemory(
  packages: readonly Finding[],
  dataDir: string,
  runsc = 'runsc',
): Promise<Finding[]> {
  if (!isPresent(packages, 'runsc')) return []
  const finding = releaseOf(runsc)().then((present) => checkSavedMemory(dataDir, present))
  return finding.then(
    (one) => [one],
    () => [],
  )
}

async function checkDiskSpace(dataDir: string): Promise<Finding> {
  const { bavail, bsize, files, ffree } = await statfsAbove(dataDir)
  const bytes = bavail * bsize
  const inodes = files > 0 ? ` and ${ffree} inodes` : ''
  const detail = `${(bytes / 1024 ** 3).toFixed(1)} GB${inodes} free for ${dataDir}`
  if (files > 0 && ffree < neededInodes) {
    const fix = 'delete files, or set ATOLL_DATA_DIR to a file system with more inodes'
    return { name: 'disk space', state: 'warn', detail: `${detail}; layers need more inodes`, fix }
  }
  if (bytes >= neededDiskBytes) return { name: 'disk space', state: 'ok', detail }
  const fix = 'delete files, or set ATOLL_DATA_DIR to a larger disk'
  return { name: 'disk space', state: 'warn', detail: `${detail}; Atoll needs about 5 GB`, fix }
}

/** Measures the nearest existing parent when the folder does not exist yet. */
function statfsAbove(path: string): Promise<StatsFs> {
  return statfs(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT' || path === '/') throw error
    return statfsAbove(dirname(path))
  })
}
