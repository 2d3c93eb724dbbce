import type { CliContext } from '../context.ts'
import { CliCommand } from '../declare/command.ts'

export function apiCommand(context: CliContext): CliCommand {
  return new CliCommand('api')
    .description('start an api of a fleet, on a PostgreSQL database that all apis share')
    .details('For one machine use `atoll up`, which needs neither PostgreSQL nor certificates.')
    .action(async () => {
      const { runApi } = await import('@atoll/server/fleet/main')
      await runApi(context.config.environment)
    })
}
