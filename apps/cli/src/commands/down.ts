import { stat } from 'node:fs/promises'
import { Command } from 'commander'
import { printLine } from '../context.ts'
import type { CliContext } from '../context.ts'

export function downCommand(context: CliContext): Command {
  return new Command('down')
    .description('end the server and all sandboxes, and leave the machine as it was')
    .addHelpText(
      'after',
      '\nRecords, templates and keys stay in ATOLL_DATA_DIR for the next start.',
    )
    .action(() => down(context))
}

/** Imports the node lazily, so that other commands start fast. */
async function down({ config, stdout }: CliContext) {
  const { stopServer } = await import('../stop-server.ts')
  const { loadNodeConfig } = await import('@atoll/node/config')
  const { tearDownNode } = await import('@atoll/node/teardown')
  const nodeConfig = loadNodeConfig(config.environment)
  if (!(await exists(config.dataDir))) {
    return printLine(stdout, `nothing to end: there is no ${config.dataDir}`)
  }
  await using server = await stopServer(config.dataDir)
  printLine(stdout, describeStop(server.stopped))
  const { endedSandboxes } = await tearDownNode(nodeConfig)
  printLine(stdout, `sandboxes ended: ${endedSandboxes}`)
  printLine(stdout, 'no namespace, mount, control group or firewall rule of them is left')
  printLine(stdout, `data is kept in ${config.dataDir}`)
}

function describeStop(stopped: { readonly pid: number; readonly by: string } | undefined): string {
  if (!stopped) return 'no server was running'
  const how = stopped.by === 'SIGKILL' ? ', killed because it did not end in time' : ''
  return `server ended: pid ${stopped.pid}${how}`
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined
}
