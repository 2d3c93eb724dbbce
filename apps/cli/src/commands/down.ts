import { Command } from 'commander'
import { printLine } from '../context.ts'
import type { CliContext } from '../context.ts'
import { findServer, stopServer } from '../server-process.ts'

export function downCommand(context: CliContext): Command {
  return new Command('down')
    .description('end the server and all sandboxes, and leave the machine as it was')
    .addHelpText(
      'after',
      '\nRecords, templates and keys stay in ATOLL_DATA_DIR for the next start.',
    )
    .action(() => down(context))
}

async function down({ config, stdout }: CliContext) {
  const pid = await findServer(config.dataDir)
  if (pid === undefined) {
    printLine(stdout, `no server runs for ${config.dataDir}`)
  } else {
    printLine(stdout, `server (pid ${pid}) ${await stopServer(pid)}`)
  }
  const { loadNodeConfig } = await import('@atoll/node/config')
  const { tearDownNode } = await import('@atoll/node/teardown')
  const { endedSandboxes } = await tearDownNode(loadNodeConfig(config.environment))
  printLine(stdout, `sandboxes ended: ${endedSandboxes}`)
  printLine(stdout, `namespaces, mounts, control groups and firewall rules removed`)
  printLine(stdout, `data kept in ${config.dataDir}`)
}
