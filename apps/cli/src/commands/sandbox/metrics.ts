import type * as replies from '@atoll/client/replies'
import { SandboxMetric } from '@atoll/contracts/metrics'
import { z } from 'zod'
import { parseCount, parseDuration } from '../../arguments.ts'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { formatSize, printTable } from '../../output/table.ts'

export function metricsCommand(context: CliContext): CliCommand {
  return new CliCommand('metrics')
    .description('show the use of CPU, memory and disk of a sandbox over time')
    .argument('<id>', 'sandbox ID')
    .option('-s, --since <duration>', 'only samples of the last 300, 90s, 5m, 2h', parseDuration)
    .option('-n, --limit <count>', 'number of samples, the newest ones', parseCount, 10)
    .json(z.array(SandboxMetric))
    .details('Samples are 5 seconds apart; long intervals are shown in longer steps.')
    .action((id: string, options: MetricsOptions) => metrics(context, id, options))
}

interface MetricsOptions {
  readonly since?: number
  readonly limit: number
  readonly json?: boolean
}

async function metrics(context: CliContext, id: string, { since, limit, json }: MetricsOptions) {
  const { platform } = await openPlatform(context)
  const start = since === undefined ? undefined : Math.floor(Date.now() / 1000) - since
  const samples = (await platform.readSandboxMetrics(id, { start })).slice(-limit)
  // The server has no samples of an unknown sandbox either.
  if (samples.length === 0) await platform.getSandbox(id)
  if (json) return printJson(context.stdout, samples)
  if (samples.length === 0) {
    return printLine(context.stderr, 'No samples yet: the first one comes within 5 seconds.')
  }
  printTable(context.stdout, ['TIME', 'CPU', 'MEMORY', 'CACHE', 'DISK'], samples.map(toRow))
}

function toRow(sample: replies.SandboxMetric): readonly string[] {
  const { cpuCount, cpuUsedPct, memUsed, memTotal, memCache, diskUsed, diskTotal } = sample
  return [
    new Date(sample.timestampUnix * 1000).toISOString(),
    `${cpuUsedPct.toFixed(1)} % of ${cpuCount}`,
    `${formatSize(memUsed)} of ${formatSize(memTotal)}`,
    formatSize(memCache),
    `${formatSize(diskUsed)} of ${formatSize(diskTotal)}`,
  ]
}
