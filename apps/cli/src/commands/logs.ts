import { join } from 'node:path'
import { z } from 'zod'
import { parseCount } from '../arguments.ts'
import { printStyled } from '../context.ts'
import type { CliContext } from '../context.ts'
import { CliCommand } from '../declare/command.ts'
import { visibleJson } from '../output/visible-text.ts'
import { formatLogLine } from '../server-log/format.ts'
import { followLines, readLastLines } from '../server-log/read.ts'

interface Options {
  readonly follow?: boolean
  readonly lines: number
  readonly json?: boolean
}

export function logsCommand(context: CliContext): CliCommand {
  return new CliCommand('logs')
    .description('print the log of the server on this machine')
    .option('-f, --follow', 'wait for more lines')
    .option('-n, --lines <count>', 'number of lines, the newest ones', parseCount, 100)
    .json(ServerLogLine, 'print the JSON lines as they are')
    .details(help)
    .action((options: Options) => logs(context, options))
}

const ServerLogLine = z
  .looseObject({
    level: z.int().describe('30 info, 40 warning, 50 error, 60 fatal'),
    time: z.int().describe('milliseconds since 1970'),
    event: z.string().optional(),
    msg: z.string().optional(),
  })
  .meta({ id: 'ServerLogLine' })

async function logs({ config, stdout }: CliContext, { follow, lines, json }: Options) {
  const path = join(config.dataDir, 'logs/server.log')
  const print = (line: string) =>
    printStyled(stdout, json ? visibleJson(line) : formatLogLine(line))
  const { last, position } = await readLastLines(path, lines)
  for (const line of last) print(line)
  if (!follow) return
  for await (const line of followLines(path, position)) print(line)
}

const help = `
Reads ATOLL_DATA_DIR/logs/server.log, as root. The server keeps 10 to 20 MB of it. With
ATOLL_LOG=stdout the log is where the supervisor of the server puts it.

Examples:
  atoll logs --follow
  atoll logs -n 100000 --json | jq 'select(.level >= 50)'`
