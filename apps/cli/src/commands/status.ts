import type { PlatformClient } from '@atoll/client/platform'
import { Fault } from '@atoll/kit/fault'
import type { Inventory, Space } from '@atoll/node/inventory'
import { findAccess, findUrls, isLocalServer } from '../access.ts'
import { printJson, printLine } from '../context.ts'
import type { CliContext } from '../context.ts'
import { CliCommand } from '../declare/command.ts'
import type { StatusReport } from './status-shape.ts'
import { Status } from './status-shape.ts'
import { formatSize } from '../output/table.ts'

export function statusCommand(context: CliContext): CliCommand {
  return new CliCommand('status')
    .description('show whether the server is up, its URLs, sandboxes and disk use')
    .json(Status)
    .details('\nThe exit code is 1 if the server is down.')
    .action((options: { readonly json?: boolean }) => status(context, options))
}

async function status(context: CliContext, options: { readonly json?: boolean }) {
  const found = await findStatus(context)
  if (options.json) printJson(context.stdout, found)
  else printLine(context.stdout, formatStatus(found))
  if (found.server === 'down') context.exitWith(1)
}

async function findStatus(context: CliContext): Promise<StatusReport> {
  const { config } = context
  const found = await askServer(context)
  if (!(await isLocalServer(config))) return found
  // Imported lazily, so that other commands start fast.
  const { readSpace } = await import('@atoll/node/inventory')
  return { ...found, space: await readSpace(config.environment) }
}

async function askServer({ config }: CliContext): Promise<StatusReport> {
  const urls = await findUrls(config)
  const { createPlatformClient } = await import('@atoll/client/platform')
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

function formatStatus(found: StatusReport): string {
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
