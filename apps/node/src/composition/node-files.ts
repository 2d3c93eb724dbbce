import { dirname, join } from 'node:path'
import type { Logger } from '@atoll/kit/log'
import type { NodeConfig } from '../config.ts'
import type { Installation } from '../domain/host/installation.ts'
import type { Runtime } from '../domain/sandboxes/runtime.ts'
import { openMountNamespace, stayInMountNamespace } from '../linux/mounts/mount-namespace.ts'
import type { MountNamespace } from '../linux/mounts/mount-namespace.ts'
import { createShiftedLayers } from '../linux/mounts/shifted-layers.ts'
import { readCertificates } from '../net/certificates.ts'
import { checkSubnetIsFree } from '../net/free-subnet.ts'
import { shiftedIds } from '../oci/runc.ts'
import { chooseRuntime } from '../setup/choose-runtime.ts'
import type { RecordKeys } from '../state/record-file.ts'
import { ensureBaseTemplate } from '../template/base.ts'
import type { DebianLayer } from '../template/debian-layer.ts'
import { openDiskSpace } from './disk-space.ts'
import { openEnvdFiles } from './envd-files.ts'
import type { EnvdFiles } from './envd-files.ts'
import { openHost } from './host.ts'
import { removeOldScratch } from './old-scratch.ts'
import type { Host } from './host.ts'
import { openTemplateFiles } from './template-files.ts'
import type { TemplateFiles } from './template-files.ts'

/** Host, layers and templates: everything a node needs before it can touch sandboxes. Disposal ends helper processes and loops. */
export interface NodeFiles extends AsyncDisposable {
  readonly host: Host
  readonly runtime: Runtime
  readonly files: TemplateFiles
  readonly envd: EnvdFiles
  /** Keeps everything open beyond the scope. The caller disposes the result. */
  release(): AsyncDisposableStack
}

/** Millions of files may have to be removed. */
const removeLimitMs = 600_000

/** Checks the configuration, prepares the base template and envd, and opens the host and the templates. */
export async function openNodeFiles(
  config: NodeConfig,
  installation: Installation,
  parts: {
    readonly log: Logger
    readonly keys: RecordKeys
    readonly progress?: (label: string, fraction: number) => void
  },
): Promise<NodeFiles> {
  const { log, progress = () => {} } = parts
  checkSubnetIsFree(config.ATOLL_SUBNET, installation.linkPrefix)
  const caFile = config.ATOLL_EGRESS_CA_FILE
  const certificates = caFile === undefined ? [] : await readCertificates(caFile)
  const runtimeName = await chooseRuntime(config)
  const entered = await openMountNamespace(installation.runDir)
  const [base, envd] = await Promise.all([
    ensureBaseTemplate({
      layersDir: layersDirOf(config),
      progress: (label, fraction) => progress(`base template: ${label}`, fraction),
    }),
    openEnvdFiles(installation, entered),
  ])
  await using opened = new AsyncDisposableStack()
  const { guest } = envd
  const namespace = opened.use(stayInMountNamespace(installation.runDir, guest))
  const onEgressError = (err: unknown) =>
    log.error(
      { err, event: 'node.egress' },
      'the egress process cannot be started, so connections that need it fail; the start is retried',
    )
  const onFirewallError = (err: unknown) =>
    log.warn(
      { err, event: 'node.firewall' },
      'connection records of ended sandboxes could not be removed; they expire after half an hour',
    )
  const space = opened.use(await openDiskSpace({ config, installation, namespace, log }))
  const host = openHost(config, installation, {
    namespace,
    keys: parts.keys,
    guest,
    certificates,
    space,
    onEgressError,
    onFirewallError,
  })
  opened.defer(() => host.firewall.close())
  await removeOldScratch(host)
  const runtime = host.runtimes[runtimeName]
  const files = await openFiles(host, namespace, base)
  const stack = opened.move()
  return {
    host,
    runtime,
    files,
    envd,
    release: () => stack.move(),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

/** Returns the folder of the layers of `base` and of the catalogue. */
export function layersDirOf(config: NodeConfig): string {
  return config.ATOLL_LAYERS_DIR ?? join(config.ATOLL_DATA_DIR, 'layers')
}

function openFiles(
  { installation, disks }: Host,
  namespace: MountNamespace,
  base: DebianLayer,
): Promise<TemplateFiles> {
  return openTemplateFiles({
    installation,
    layersDir: dirname(base.layerDir),
    layer: base.layerId,
    disks,
    async removeFolder(dir) {
      const args = ['--recursive', '--force', '--one-file-system', dir]
      await namespace.run('rm', args, { timeoutMs: removeLimitMs })
    },
    async flush(dir) {
      await namespace.run('sync', ['--file-system', dir], { timeoutMs: removeLimitMs })
    },
    shifted: createShiftedLayers({
      namespace,
      dir: join(installation.runDir, 'layers'),
      ...shiftedIds,
    }),
  })
}
