import { z } from 'zod'
import { printJson, printStyled } from '../context.ts'
import type { CliContext } from '../context.ts'
import { CliCommand } from '../declare/command.ts'

export function doctorCommand(context: CliContext): CliCommand {
  return new CliCommand('doctor')
    .description('check that this machine can run Atoll, and show how to install what is missing')
    .json(z.array(Finding), 'print the findings as JSON')
    .details('\nThe exit code is 1 if a requirement is missing.')
    .action((options: { readonly json?: boolean }) => doctor(context, options))
}

const Finding = z
  .object({
    name: z.string(),
    state: z.enum(['ok', 'warn', 'missing']),
    detail: z.string(),
    fix: z.string().optional().describe('Command or advice that fixes the problem'),
  })
  .meta({ id: 'Finding' })

async function doctor(context: CliContext, options: { readonly json?: boolean }) {
  const { stdout } = context
  const { formatFindings, runDoctor } = await import('@atoll/node/setup/doctor')
  const findings = await runDoctor(context.config.environment)
  const color = stdout.isTTY && stdout.hasColors()
  if (options.json) printJson(stdout, findings)
  else printStyled(stdout, formatFindings(findings, { color }))
  if (findings.some(({ state }) => state === 'missing')) context.exitWith(1)
}
