/** What scenarios play on: an installation for each runtime, the bare runtimes and full stores, made when first wanted. */
import { startCloud } from '@atoll/system-tests/cloud-by-hand'
import type { CloudByHand, HandSandbox } from '@atoll/system-tests/cloud-by-hand'
import { cellOf, namesOf } from '@atoll/system-tests/host-state'
import { Sandbox } from 'e2b'
import { prepareBaselines } from './baselines.ts'
import type { Baselines, RuntimeName } from './baselines.ts'
import { countCells, waitForFullPool } from './pool.ts'
import { fillPostgres, fillSqlite } from './record-store.ts'
import type { RecordStore } from './record-store.ts'

export interface TestBed extends AsyncDisposable {
  /** One that boots every sandbox, unless another kind is asked for. */
  cloud(runtime: RuntimeName, kind?: CloudKind): Promise<CloudByHand>
  /** A new sandbox, also in the hands of the published SDK; `await using` ends it. */
  sandbox(runtime: RuntimeName): Promise<BenchSandbox>
  baselines(): Promise<Baselines>
  /** One of each kind, with the same records. */
  recordStores(): Promise<readonly RecordStore[]>
}

/** Where new sandboxes come from: a boot, a checkpoint that was taken once, or a pool of ready ones. */
export type CloudKind = 'boots' | 'restores' | 'pooled'

export interface BenchSandbox extends AsyncDisposable {
  readonly cloud: CloudByHand
  readonly handle: HandSandbox
  readonly sdk: Sandbox
}

export function openTestBed(progress: (text: string) => void): TestBed {
  const opened = new AsyncDisposableStack()
  const clouds = new Map<string, Promise<CloudByHand>>()
  let baselines: Promise<Baselines> | undefined
  let recordStores: Promise<readonly RecordStore[]> | undefined

  const cloud: TestBed['cloud'] = (runtime, kind = 'boots') => {
    const key = `${runtime} ${kind}`
    const known = clouds.get(key) ?? start(runtime, kind)
    clouds.set(key, known)
    return known
  }
  return {
    cloud,
    async sandbox(runtime) {
      const home = await cloud(runtime)
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

  async function start(runtime: RuntimeName, kind: CloudKind): Promise<CloudByHand> {
    progress(`starting an installation with ${runtime} that ${meanings[kind]}`)
    const pools = kind === 'boots' ? {} : { ATOLL_POOL_MEMORY_MB: String(poolMemoryMb) }
    const settings = { ATOLL_RUNTIME: runtime, ATOLL_BASE_DISK_SIZE_MB: '4096', ...pools }
    const made = opened.use(await startCloud(settings))
    if (kind === 'restores') await keepCheckpointAlone(made)
    return made
  }
}

/** The checkpoint is made for the first pool and outlives it: the next server may keep nothing ready. */
async function keepCheckpointAlone(cloud: CloudByHand): Promise<void> {
  const { installation } = cloud
  await waitForFullPool(cloud)
  await installation.interrupt()
  await installation.start({ ATOLL_POOL_MEMORY_MB: '0' })
  while ((await countCells(cloud)).ready > 0) {
    const { sandboxID } = await cloud.createSandbox()
    await cloud.platform('DELETE', `/sandboxes/${sandboxID}`)
  }
}

/** The control group of a sandbox, below each hierarchy. */
export async function groupOf(cloud: CloudByHand, { sandboxID }: HandSandbox): Promise<string> {
  const names = await namesOf(cloud.installation.dataDir)
  return `/${names.cgroup}/${await cellOf(names, sandboxID)}`
}

const sandboxTimeoutSeconds = 3600
/** Room for all that any scenario lets a pool keep. */
const poolMemoryMb = 4096

const meanings: Readonly<Record<CloudKind, string>> = {
  boots: 'boots each sandbox',
  restores: 'restores each sandbox',
  pooled: 'keeps sandboxes ready',
}
