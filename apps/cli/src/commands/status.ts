import { createPlatformClient } from '@atoll/client/platform'
import type { PlatformClient } from '@atoll/client/platform'
import { Fault } from '@atoll/kit/fault'
import type { Inventory, Space } from '@atoll/node/inventory'
import { Command } from 'commander'
import { findAccess, findUrls, isLocalServer } from '../access.ts'
import { printJson, printLine } from '../context.ts'
import type { CliContext } from '../context.ts'
import { formatSize } from '../table.ts'

export function statusCommand(context: CliContext): Command {
  return new Command('status')
    .description('show whether the server is up, its URLs, sandboxes and disk use')
    .option('--json', 'print as JSON')
    .addHelpText('after', '\nThe exit code is 1 if the server is down.')
    .action((options: { readonly json?: boolean }) => status(context, options))
}

interface Status {
  readonly server: 'up' | 'down'
  readonly apiUrl: string
  readonly sandboxUrl: string
  readonly problem?: string
  readonly sandboxes?: { readonly running: number; readonly paused: number }
  /** Pre-warmed sandboxes by template. Known for a local server only. */
  readonly ready?: Inventory['ready']
  /** Disk use of paused sandboxes and snapshots of all teams. Known for a local server only. */
  readonly disk?: Pick<Inventory, 'paused' | 'snapshots'>
  /** Unreadable records, whose files are kept. Known for a local server only. */
  readonly quarantined?: Inventory['quarantined']
  /** Free space of the data file system. Known for a local server only. */
  readonly space?: Space
}

async function status(context: CliContext, options: { readonly json?: boolean }) {
  const found = await findStatus(context)
  if (options.json) printJson(context.stdout, found)
  else printLine(context.stdout, formatStatus(found))
  if (found.server === 'down') context.exitWith(1)
}

async function findStatus(context: CliContext): Promise<Status> {
  const { config } = context
  const found = await askServer(context)
  if (!(await isLocalServer(config))) return found
  // Imported lazily, so that other commands start fast.
  const { readSpace } = await import('@atoll/node/inventory')
  return { ...found, space: await readSpace(config.environment) }
}

async function askServer({ config }: CliContext): Promise<Status> {
  const urls = await findUrls(config)
  try {
    await createPlatformClient({ url: urls.apiUrl, requestTimeoutMs: 5000 }).health()
  } catch (thrown) {
    if (thrown instanceof Fault) return { server: 'down', ...urls, problem: thrown.message }
    throw thrown
  }
  try {
    const { apiKey } = await findAccess(config)
    const platform = createPlatformClient({ url: urls.apiUrl, apiKey })
    const sandboxes = await countSandboxes(platform)
    if (!(await isLocalServer(config))) return { server: 'up', ...urls, sandboxes }
    const { takeInventory } = await import('@atoll/node/inventory')
    const { ready, quarantined, ...disk } = await takeInventory(config.dataDir)
    return { server: 'up', ...urls, sandboxes, ready, disk, quarantined }
  } catch (thrown) {
    if (thrown instanceof Fault) return { server: 'up', ...urls, problem: thrown.message }
    throw thrown
  }
}

async function countSandboxes(platform: PlatformClient) {
  const counts = { running: 0, paused: 0 }
  for await (const { state } of platform.listSandboxes()) if (state !== 'ended') counts[state] += 1
  return counts
}

function formatStatus(found: Status): string {
  const { server, apiUrl, sandboxUrl, problem, sandboxes, ready, disk } = found
  const { space, quarantined = [] } = found
  const lines = [
    `server      ${server}`,
    `API         ${apiUrl}`,
    `sandboxes   ${sandboxUrl}`,
    ...(sandboxes ? [`running     ${sandboxes.running}`, `paused      ${sandboxes.paused}`] : []),
    ...(ready ? [`ready       ${formatReady(ready)}`] : []),
    ...(disk ? [`disk        ${formatDisk(disk)}`] : []),
    ...quarantined.map(
      ({ kind, path, reason }) => `unreadable  ${kind} ${path}: ${reason}; its files are kept`,
    ),
    ...(space ? [`space       ${formatSpace(space)}`] : []),
    ...(space && spaceProblems[space.level] ? [`problem     ${spaceProblems[space.level]}`] : []),
    ...(problem ? [`problem     ${problem}`] : []),
    ...(server === 'down' ? ['hint        start the server with `npm start`'] : []),
  ]
  return lines.join('\n')
}

function formatReady(ready: Readonly<Record<string, number>>): string {
  const pools = Object.entries(ready).map(([template, count]) => `${count} of ${template}`)
  return pools.length > 0 ? pools.join(', ') : 'none'
}

function formatDisk({ paused, snapshots }: Pick<Inventory, 'paused' | 'snapshots'>): string {
  const inPaused = `${formatSize(paused.diskBytes)} in paused sandboxes (${paused.count})`
  return `${inPaused}, ${formatSize(snapshots.diskBytes)} in snapshots (${snapshots.count})`
}

function formatSpace({ freeBytes, totalBytes, reserveBytes, freeInodes }: Space): string {
  const bytes = `${formatSize(freeBytes)} free of ${formatSize(totalBytes)}`
  return `${bytes}, ${formatSize(reserveBytes)} of it reserved; ${freeInodes} inodes free`
}

const whatToFree = 'delete sandboxes or snapshots, or add disk space'

const spaceProblems: Readonly<Partial<Record<Space['level'], string>>> = {
  scarce: `disk space is scarce: ${whatToFree}`,
  full: `the disk is full, and writes in sandboxes fail: ${whatToFree}`,
}
