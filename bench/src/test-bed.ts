/** Resources of the scenarios, created on first use: installations of each runtime, bare runtimes and filled stores. */
import { startCloud } from '@atoll/system-tests/http-cloud'
import type { HttpCloud, HttpSandbox } from '@atoll/system-tests/http-cloud'
import { cellOf, namesOf } from '@atoll/system-tests/host-state'
import { Sandbox } from 'e2b'
import { prepareBaselines } from './baselines.ts'
import type { Baselines, RuntimeName } from './baselines.ts'
import { countCells, waitForFullPool } from './pool.ts'
import { fillPostgres, fillSqlite } from './record-store.ts'
import type { RecordStore } from './record-store.ts'

export interface TestBed extends AsyncDisposable {
  /** Starts an installation, which boots every sandbox unless `kind` says otherwise. */
  cloud(runtime: RuntimeName, kind?: CloudKind, settings?: Settings): Promise<HttpCloud>
  /** Creates a sandbox and connects the published SDK to it. Disposal kills the sandbox. */
  sandbox(runtime: RuntimeName, kind?: CloudKind): Promise<BenchSandbox>
  baselines(): Promise<Baselines>
  /** A SQLite and a PostgreSQL store with the same records. */
  recordStores(): Promise<readonly RecordStore[]>
}

/** More environment variables. Installations with different settings are kept apart. */
export type Settings = Readonly<Record<string, string>>

/** How sandboxes start: by a boot, from a checkpoint, or from the warm pool. */
export type CloudKind = 'boots' | 'restores' | 'pooled'

export interface BenchSandbox extends AsyncDisposable {
  readonly cloud: HttpCloud
  readonly handle: HttpSandbox
  readonly sdk: Sandbox
}

export function openTestBed(progress: (text: string) => void): TestBed {
  const opened = new AsyncDisposableStack()
  const clouds = new Map<string, Promise<HttpCloud>>()
  let baselines: Promise<Baselines> | undefined
  let recordStores: Promise<readonly RecordStore[]> | undefined

  const cloud: TestBed['cloud'] = (runtime, kind = 'boots', more = {}) => {
    const key = JSON.stringify([runtime, kind, more])
    const known = clouds.get(key) ?? start(runtime, kind, more)
    clouds.set(key, known)
    return known
  }
  return {
    cloud,
    async sandbox(runtime, kind) {
      const home = await cloud(runtime, kind)
      // A sandbox that was made before the pool was full would be slower in its first command, and so would its copies.
      if (kind === 'pooled') await waitForFullPool(home)
      const { connection } = home.installation
      const handle = await home.createSandbox({ timeout: sandboxTimeoutSeconds })
      const timeoutMs = sandboxTimeoutSeconds * 1000
      const sdk = await Sandbox.connect(handle.sandboxID, { ...connection, timeoutMs })
      const end = async () => void (await sdk.kill())
      return { cloud: home, handle, sdk, [Symbol.asyncDispose]: end }
    },
    baselines() {
      baselines ??= prepareBaselines().then((made) => opened.use(made))
      return baselines
    },
    recordStores() {
      recordStores ??= fillStores()
      return recordStores
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }

  async function fillStores(): Promise<readonly RecordStore[]> {
    progress('filling a store of each kind')
    return [opened.use(await fillSqlite()), opened.use(await fillPostgres())]
  }

  async function start(runtime: RuntimeName, kind: CloudKind, more: Settings): Promise<HttpCloud> {
    progress(`starting an installation with ${runtime} that ${meanings[kind]}`)
    const pools = kind === 'boots' ? {} : { ATOLL_POOL_MEMORY_MB: String(poolMemoryMb) }
    const settings = { ATOLL_RUNTIME: runtime, ATOLL_BASE_DISK_SIZE_MB: '4096', ...pools, ...more }
    const made = opened.use(await startCloud(settings))
    if (kind === 'restores') await keepCheckpointAlone(made)
    return made
  }
}

/** Fills a warm pool, which makes the checkpoint, then restarts without a pool and uses up the ready sandboxes. */
async function keepCheckpointAlone(cloud: HttpCloud): Promise<void> {
  const { installation } = cloud
  await waitForFullPool(cloud)
  await installation.interrupt()
  await installation.start({ ATOLL_POOL_MEMORY_MB: '0' })
  while ((await countCells(cloud)).ready > 0) {
    const { sandboxID } = await cloud.createSandbox()
    await cloud.platform('DELETE', `/sandboxes/${sandboxID}`)
  }
}

/** Returns the control group of a sandbox, relative to the root of each hierarchy. */
export async function groupOf(cloud: HttpCloud, { sandboxID }: HttpSandbox): Promise<string> {
  const names = await namesOf(cloud.installation.dataDir)
  return `/${names.cgroup}/${await cellOf(names, sandboxID)}`
}

const sandboxTimeoutSeconds = 3600
/** Enough for the largest pool of any scenario. */
const poolMemoryMb = 4096

const meanings: Readonly<Record<CloudKind, string>> = {
  boots: 'boots each sandbox',
  restores: 'restores each sandbox',
  pooled: 'keeps sandboxes ready',
}
