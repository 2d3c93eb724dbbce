import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile, readlink, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { run, tryRun } from '@atoll/kit/run'

/** Names of host resources of an installation, as listed in docs/crash-recovery.md. */
export interface Names {
  readonly tag: string
  readonly dataDir: string
  readonly runDir: string
  readonly linkPrefix: string
  readonly nftTable: string
  readonly cgroup: string
}

export async function namesOf(dataDir: string): Promise<Names> {
  const realDir = await realpath(dataDir)
  const tag = createHash('sha256').update(realDir).digest('hex').slice(0, 5)
  return {
    tag,
    dataDir: realDir,
    runDir: `/run/atoll/${tag}`,
    linkPrefix: `at${tag}-`,
    nftTable: `atoll_${tag}`,
    cgroup: `atoll-${tag}`,
  }
}

/** Host resources of one installation. Each must be gone when the installation does not use it anymore. */
export interface HostState {
  readonly links: readonly string[]
  readonly networkNamespaces: readonly string[]
  /** Mount points of the installation, on the host and in its own mount namespace. */
  readonly hostMounts: readonly string[]
  readonly ownMounts: readonly string[]
  /** Processes in other mount namespaces that pin the disk or root of a sandbox. */
  readonly pinningProcesses: readonly string[]
  readonly loopDevices: readonly string[]
  readonly cgroups: readonly string[]
  readonly processes: readonly string[]
  /** Processes that start the commands of a running server. */
  readonly spawners: readonly string[]
  /** Egress processes; `marks` are the policy routes that redirect to them. */
  readonly egresses: readonly string[]
  readonly marks: readonly string[]
  readonly rules: readonly string[]
  readonly sandboxFolders: readonly string[]
  readonly runFiles: readonly string[]
  readonly temporaryFiles: readonly string[]
}

export async function hostState(names: Names, temporaryDir: string): Promise<HostState> {
  const { dataDir, runDir } = names
  const processes = await hostProcesses()
  const namespaceFile = join(runDir, 'mnt')
  const [ownNamespace] = await runInNamespace(namespaceFile, ['readlink', '/proc/self/ns/mnt'])
  const isOurs = (text: string) => text.includes(runDir) || text.includes(dataDir)
  return {
    links: (await readdir('/sys/class/net')).filter((name) => name.startsWith(names.linkPrefix)),
    networkNamespaces: await runInNamespace(namespaceFile, ['ls', '/run/netns']),
    hostMounts: mountsBelow(await readFile('/proc/self/mountinfo', 'utf8'), isOurs),
    ownMounts: mountsBelow(
      (await runInNamespace(namespaceFile, ['cat', '/proc/self/mountinfo'])).join('\n'),
      isOurs,
    ),
    pinningProcesses: processes
      .filter(
        ({ mounts, namespace }) =>
          namespace !== ownNamespace && mounts.includes(`${runDir}/mounts/`),
      )
      .map(({ title }) => title),
    loopDevices: await loopDevices(dataDir),
    cgroups: await cgroupsNamed(names.cgroup),
    processes: processes
      .filter(({ title, groups }) => isOurs(title) || groups.includes(`/${names.cgroup}/`))
      .map(({ title }) => title)
      .filter((title) => !isSpawner(names, title) && !isEgress(names, title)),
    spawners: processes.map(({ title }) => title).filter((title) => isSpawner(names, title)),
    egresses: processes.map(({ title }) => title).filter((title) => isEgress(names, title)),
    marks: (await run('ip', ['rule'])).split('\n').filter((line) => line.includes(names.tag)),
    rules: await ruleset(names.nftTable),
    sandboxFolders: await listing(join(dataDir, 'cells')),
    runFiles: await listing(runDir),
    temporaryFiles: await listing(temporaryDir),
  }
}

function isSpawner({ dataDir }: Names, title: string): boolean {
  return title.startsWith(dataDir) && title.endsWith('/guest spawner --tied')
}

function isEgress({ runDir }: Names, title: string): boolean {
  return title.includes(` ${runDir}/egress.sock `)
}

/** Lists all egress processes; more than one is an error. */
export async function egressesOf(names: Names): Promise<number[]> {
  const processes = await hostProcesses()
  return processes.filter(({ title }) => isEgress(names, title)).map(({ pid }) => pid)
}

/** Counts the sandboxes with traffic redirected to the egress process. */
export async function routedSandboxes({ nftTable }: Names): Promise<number> {
  const rules = (await ruleset(nftTable)).join('\n')
  return [...rules.matchAll(/"at[0-9a-f]{5}-\d+" : goto to_egress/g)].length
}

/** Returns the process that starts the commands of a running server. */
export async function spawnerOf(names: Names): Promise<number | undefined> {
  const spawner = (await hostProcesses()).find(({ title }) => isSpawner(names, title))
  return spawner?.pid
}

/**
 * Lists the host's own tables, routes, links and mounts, without those of any installation, and without the networks
 * that other tests have outside the host (`openOutside`).
 */
export async function bareHost(): Promise<string[]> {
  const [tables, routes, links, mounts] = await Promise.all([
    run('nft', ['list', 'tables']),
    run('ip', ['route']),
    run('ip', ['-o', 'link']),
    readFile('/proc/self/mountinfo', 'utf8'),
  ])
  const otherNames = /\bat(oll[_-])?[0-9a-f]{5}\b|\/run\/atoll\/[0-9a-f]{5}|\bout\d+\b/
  return [
    ...tables.split('\n'),
    ...routes.split('\n'),
    ...links.split('\n').map((line) => line.split(': ')[1] ?? ''),
    ...mountsBelow(mounts, () => true),
  ].filter((line) => !otherNames.test(line))
}

/** Returns whether the host forwarded packets before its first installation started. */
export async function forwardedBefore(): Promise<boolean> {
  const saved = await readFile('/run/atoll/ip_forward', 'utf8').catch(() => undefined)
  return (saved ?? (await readFile('/proc/sys/net/ipv4/ip_forward', 'utf8'))).trim() === '1'
}

/** Returns whether the host forwards packets, and whether another installation needs it. */
export async function forwarding(names: Names) {
  const tables = await run('nft', ['list', 'tables'])
  const otherTables = [...tables.matchAll(/\batoll_[0-9a-f]{5}\b/g)].filter(
    ([table]) => table !== names.nftTable,
  )
  const setting = await readFile('/proc/sys/net/ipv4/ip_forward', 'utf8')
  return { isOn: setting.trim() === '1', isNeededByOthers: otherTables.length > 0 }
}

/** Returns the cell ID of a sandbox, which names its groups, mounts and folders. */
export async function cellOf(
  { dataDir }: Pick<Names, 'dataDir'>,
  sandboxId: string,
): Promise<string> {
  const cell = (await cellOwners(dataDir)).find(({ owner }) => owner === sandboxId)
  if (cell) return cell.cellId
  throw new Error(`no cell belongs to sandbox ${sandboxId}`)
}

/** Lists all cells of an installation with their sandbox, if any. */
export async function cellOwners(
  dataDir: string,
): Promise<{ readonly cellId: string; readonly owner: string | undefined }[]> {
  return (await cells(dataDir)).map(({ cellId, owner }) => ({ cellId, owner }))
}

/** Record of a cell; only the ID is set when the record cannot be read. */
export interface CellOnDisk {
  readonly cellId: string
  readonly owner: string | undefined
  readonly phase: string | undefined
  readonly disk: string | undefined
  /** Runtime release that saved its memory, if any. */
  readonly memory: string | undefined
  /** Whether the cell waits for a restore: it has processes and a slot, and no disk. */
  readonly isBlank: boolean
  readonly slotNumber: number | undefined
}

export async function cells(dataDir: string): Promise<CellOnDisk[]> {
  const folders = await readdir(join(dataDir, 'cells')).catch(() => [])
  // A folder whose name begins with a dot is being removed. A resume removes the paused one after its answer.
  const kept = folders.filter((name) => !name.startsWith('.'))
  return Promise.all(
    kept.map(async (cellId) => {
      const file = join(dataDir, 'cells', cellId, 'cell.json')
      const record = JSON.parse(await readFile(file, 'utf8').catch(() => '{}'))
      const { phase, disk, memory, slotNumber } = record
      const isBlank = phase === 'making' && record.templateId === ''
      return { cellId, owner: record.owner?.sandboxId, phase, disk, memory, isBlank, slotNumber }
    }),
  )
}

/** Returns the host PIDs of a sandbox's processes. */
export async function processesOf(names: Names, sandboxId: string): Promise<number[]> {
  return processesOfCell(names, await cellOf(names, sandboxId))
}

export async function processesOfCell(names: Names, cellId: string): Promise<number[]> {
  const pids = new Set<number>()
  for (const root of await hierarchies()) {
    const file = join(root, names.cgroup, cellId, 'cgroup.procs')
    const text = await readFile(file, 'utf8').catch(() => '')
    for (const line of text.split('\n').filter(Boolean)) pids.add(Number(line))
  }
  return [...pids]
}

/** Reads the first of `files` that exists in a control group of the sandbox, in any hierarchy. */
export async function cgroupValue(
  names: Names,
  sandboxId: string,
  files: readonly string[],
): Promise<string> {
  return (await readFile(await cgroupFile(names, sandboxId, files), 'utf8')).trim()
}

export async function cgroupFile(
  names: Names,
  sandboxId: string,
  files: readonly string[],
): Promise<string> {
  const path = await cgroupFileOfCell(names, await cellOf(names, sandboxId), files)
  if (path !== undefined) return path
  throw new Error(`sandbox ${sandboxId} has none of ${files.join(', ')}`)
}

async function cgroupFileOfCell(
  names: Names,
  cellId: string,
  files: readonly string[],
): Promise<string | undefined> {
  for (const root of await hierarchies()) {
    const path = files.map((file) => join(root, names.cgroup, cellId, file)).find(existsSync)
    if (path !== undefined) return path
  }
  return undefined
}

/** Counts the cells in warm pools. A pre-warmed copy of a snapshot stays in phase `making`, and is frozen. */
export async function countPrewarmed(names: Names): Promise<number> {
  const unowned = (await cells(names.dataDir)).filter(
    ({ owner, isBlank }) => owner === undefined && !isBlank,
  )
  const arePrewarmed = await Promise.all(
    unowned.map(
      async ({ phase, cellId }) =>
        phase === 'ready' || (phase === 'making' && (await isFrozen(names, cellId))),
    ),
  )
  return arePrewarmed.filter(Boolean).length
}

async function isFrozen(names: Names, cellId: string): Promise<boolean> {
  const path = await cgroupFileOfCell(names, cellId, ['freezer.state', 'cgroup.freeze'])
  const state = path && (await readFile(path, 'utf8').catch(() => '')).trim()
  return state === 'FROZEN' || state === '1'
}

async function hierarchies(): Promise<string[]> {
  const table = await readFile('/proc/self/mountinfo', 'utf8')
  return table
    .split('\n')
    .filter((line) => / - cgroup2? /.test(line))
    .map((line) => line.split(' ')[4] ?? '')
}

async function cgroupsNamed(parent: string): Promise<string[]> {
  const paths: string[] = []
  for (const root of await hierarchies()) {
    const children = await readdir(join(root, parent), { withFileTypes: true }).catch(
      () => undefined,
    )
    if (!children) continue
    paths.push(join(root, parent))
    for (const entry of children)
      if (entry.isDirectory()) paths.push(join(root, parent, entry.name))
  }
  return paths.toSorted()
}

async function hostProcesses() {
  const processes = []
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const title = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '')
    const mounts = await readFile(`/proc/${name}/mountinfo`, 'utf8').catch(() => '')
    const namespace = await readlink(`/proc/${name}/ns/mnt`).catch(() => '')
    const groups = await readFile(`/proc/${name}/cgroup`, 'utf8').catch(() => '')
    processes.push({
      pid: Number(name),
      title: title.replaceAll('\0', ' ').trim(),
      mounts,
      namespace,
      groups,
    })
  }
  return processes
}

async function loopDevices(dir: string): Promise<string[]> {
  const files = (await readdir('/sys/block'))
    .filter((name) => name.startsWith('loop'))
    .map((name) => readFile(`/sys/block/${name}/loop/backing_file`, 'utf8').catch(() => ''))
  return (await Promise.all(files)).filter((file) => file.startsWith(`${dir}/`))
}

async function ruleset(table: string): Promise<string[]> {
  const { stdout } = await tryRun('nft', ['list', 'table', 'inet', table])
  return stdout.split('\n').filter(Boolean)
}

async function runInNamespace(
  namespaceFile: string,
  command: readonly string[],
): Promise<string[]> {
  const { code, stdout } = await tryRun('nsenter', [`--mount=${namespaceFile}`, '--', ...command])
  return code === 0 ? stdout.split('\n').filter(Boolean) : []
}

async function listing(dir: string): Promise<string[]> {
  const entries: string[] = await readdir(dir, { recursive: true }).catch(() => [])
  return entries.toSorted()
}

function mountsBelow(table: string, matches: (line: string) => boolean): string[] {
  return table
    .split('\n')
    .filter(matches)
    .map((line) => line.split(' ')[4] ?? '')
    .toSorted()
}
