/** What scenarios play on: an installation for each runtime, the bare runtimes and full stores, made when first wanted. */
import { startCloud } from '@atoll/system-tests/cloud-by-hand'
import type { CloudByHand, HandSandbox } from '@atoll/system-tests/cloud-by-hand'
import { cellOf, namesOf } from '@atoll/system-tests/host-state'
import { Sandbox } from 'e2b'
import { prepareBaselines } from './baselines.ts'
import type { Baselines, RuntimeName } from './baselines.ts'
import { fillPostgres, fillSqlite } from './record-store.ts'
import type { RecordStore } from './record-store.ts'

export interface Stage extends AsyncDisposable {
  cloud(runtime: RuntimeName): Promise<CloudByHand>
  /** A new sandbox, also in the hands of the published SDK; `await using` ends it. */
  sandbox(runtime: RuntimeName): Promise<StagedSandbox>
  baselines(): Promise<Baselines>
  /** One of each kind, with the same records. */
  recordStores(): Promise<readonly RecordStore[]>
}

export interface StagedSandbox extends AsyncDisposable {
  readonly cloud: CloudByHand
  readonly hand: HandSandbox
  readonly sdk: Sandbox
}

export function openStage(progress: (text: string) => void): Stage {
  const opened = new AsyncDisposableStack()
  const clouds = new Map<RuntimeName, Promise<CloudByHand>>()
  let baselines: Promise<Baselines> | undefined
  let recordStores: Promise<readonly RecordStore[]> | undefined

  const cloud = (runtime: RuntimeName) => {
    const known = clouds.get(runtime) ?? start(runtime)
    clouds.set(runtime, known)
    return known
  }
  return {
    cloud,
    async sandbox(runtime) {
      const home = await cloud(runtime)
      const { connection } = home.installation
      const hand = await home.createSandbox({ timeout: lifeSeconds })
      const timeoutMs = lifeSeconds * 1000
      const sdk = await Sandbox.connect(hand.sandboxID, { ...connection, timeoutMs })
      const end = async () => void (await sdk.kill())
      return { cloud: home, hand, sdk, [Symbol.asyncDispose]: end }
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

  async function start(runtime: RuntimeName): Promise<CloudByHand> {
    progress(`starting an installation with ${runtime}`)
    return opened.use(await startCloud({ ATOLL_RUNTIME: runtime, ATOLL_BASE_DISK_SIZE_MB: '4096' }))
  }
}

/** The control group of a sandbox, below each hierarchy. */
export async function groupOf(cloud: CloudByHand, { sandboxID }: HandSandbox): Promise<string> {
  const names = await namesOf(cloud.installation.dataDir)
  return `/${names.cgroup}/${await cellOf(names, sandboxID)}`
}

const lifeSeconds = 3600
