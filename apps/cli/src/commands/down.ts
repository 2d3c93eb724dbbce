import { stat } from 'node:fs/promises'
import { printLine } from '../context.ts'
import type { CliContext } from '../context.ts'
import { CliCommand } from '../declare/command.ts'

export function downCommand(context: CliContext): CliCommand {
  return new CliCommand('down')
    .description('stop the server and all running sandboxes, and clean up the machine')
    .details('\nRecords, templates, snapshots, paused sandboxes and keys stay in ATOLL_DATA_DIR.')
    .action(() => down(context))
}

/** Imports the node lazily, so that other commands start fast. */
async function down({ config, stdout }: CliContext) {
  const { stopServer } = await import('../stop-server.ts')
  const { loadNodeConfig } = await import('@atoll/node/config')
  const { tearDownNode } = await import('@atoll/node/teardown')
  const nodeConfig = loadNodeConfig(config.environment)
  if (!(await exists(config.dataDir))) {
    return printLine(stdout, `nothing to stop: ${config.dataDir} does not exist`)
  }
  await using server = await stopServer(config.dataDir)
  printLine(stdout, describeStop(server.stopped))
  const { endedSandboxes } = await tearDownNode(nodeConfig)
  printLine(stdout, `sandboxes stopped: ${endedSandboxes}`)
  printLine(stdout, 'removed their namespaces, mounts, control groups and firewall rules')
  printLine(stdout, `data is kept in ${config.dataDir}`)
}

function describeStop(stopped: { readonly pid: number; readonly by: string } | undefined): string {
  if (!stopped) return 'no server was running'
  const how = stopped.by === 'SIGKILL' ? ', killed because it did not exit in time' : ''
  return `server stopped: PID ${stopped.pid}${how}`
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined
}
