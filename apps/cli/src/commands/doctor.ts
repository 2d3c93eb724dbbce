import { Command } from 'commander'
import { printJson, printLine } from '../context.ts'
import type { CliContext } from '../context.ts'

export function doctorCommand(context: CliContext): Command {
  return new Command('doctor')
    .description('check that this machine can run Atoll, and show how to install what is missing')
    .option('--json', 'print the findings as JSON')
    .addHelpText('after', '\nThe exit code is 1 if a requirement is missing.')
    .action((options: { readonly json?: boolean }) => doctor(context, options))
}

async function doctor(context: CliContext, options: { readonly json?: boolean }) {
  const { stdout } = context
  const { formatFindings, runDoctor } = await import('@atoll/node/setup/doctor')
  const findings = await runDoctor(context.config.environment)
  const color = stdout.isTTY && stdout.hasColors()
  if (options.json) printJson(stdout, findings)
  else printLine(stdout, formatFindings(findings, { color }))
  if (findings.some(({ state }) => state === 'missing')) context.exitWith(1)
}
