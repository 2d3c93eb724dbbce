import { printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { openNodes } from './open-nodes.ts'

type FleetRole = 'edge' | 'node'

export function tokenCommand(context: CliContext, role: FleetRole): CliCommand {
  return new CliCommand('token')
    .description(`create a token with which one ${role} can join the fleet, within an hour`)
    .action(() => createToken(context, role))
}

export function joinCommand(context: CliContext, role: FleetRole): CliCommand {
  return new CliCommand('join')
    .description(`let this machine join a fleet as ${role === 'edge' ? 'an edge' : 'a node'}`)
    .argument('<api>', 'internal address of an api, host:port')
    .requiredOption('--token <token>', `what \`atoll ${role} token\` printed`)
    .details(
      `Keeps certificate and key in ATOLL_DATA_DIR. Then start it with \`atoll ${role} run\`.`,
    )
    .action((api: string, { token }: { readonly token: string }) =>
      join(context, { role, api, token }),
    )
}

export function runCommand(context: CliContext, role: FleetRole): CliCommand {
  return new CliCommand('run')
    .description(`run this machine's ${role} of a fleet until a signal stops it`)
    .details(
      role === 'node'
        ? 'Sandboxes keep running when the agent stops; the next start adopts them.'
        : 'Any number of edges may run behind a load balancer.',
    )
    .action(() => run(context, role))
}

async function createToken(context: CliContext, role: FleetRole): Promise<void> {
  const { token } = await (await openNodes(context)).createJoinToken(role)
  printLine(context.stdout, token)
}

async function join(
  context: CliContext,
  options: { readonly role: FleetRole; readonly api: string; readonly token: string },
): Promise<void> {
  const { joinPart } = await import('@atoll/server/fleet/join-part')
  const id = await joinPart({ ...options, dataDir: context.config.dataDir })
  printLine(context.stdout, `joined as ${options.role} ${id}`)
}

async function run({ config }: CliContext, role: FleetRole): Promise<void> {
  const { runEdge, runNode } = await import('@atoll/server/fleet/main')
  await (role === 'edge' ? runEdge(config.environment) : runNode(config.environment))
}
