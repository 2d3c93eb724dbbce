import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { renderUnit, settingsFile, unitFile } from '../../service/unit.ts'

interface Options {
  readonly print?: boolean
  readonly start: boolean
  readonly root?: string
}

export function installCommand(context: CliContext): CliCommand {
  return new CliCommand('install')
    .description('write the systemd unit of this clone, enable it and start it')
    .option('--print', 'print the unit, and change nothing')
    .option('--no-start', 'enable the unit, but do not start it now')
    .option('--root <directory>', 'write into the file tree of another system; implies --no-start')
    .details(help)
    .action((options: Options) => install(context, options))
}

async function install(context: CliContext, { print, start, root }: Options) {
  const { config, stdout } = context
  const unit = await renderUnit(config.environment['PATH'])
  if (print) {
    stdout.write(unit)
    return
  }
  // Imported lazily, so that other commands start fast.
  const { renderSettings } = await import('../../service/settings.ts')
  const { openFileTree, openSystemd } = await import('../../service/service-manager.ts')
  const settings = renderSettings(config.environment)
  const manager = root === undefined ? openSystemd() : openFileTree(root)
  const started = start ? manager.running : undefined
  if (started && !(await started.isActive())) await checkDataDir(config.dataDir)

  await writeFiles(context, root ?? '/', { unit, settings })
  await manager.reload()
  await manager.enable()
  await started?.restart()
  printLine(stdout, started ? 'the service is enabled and started' : 'the service is enabled')
  printLine(stdout, 'logs: atoll logs --follow')
}

async function writeFiles(
  { stdout }: CliContext,
  root: string,
  contents: { readonly unit: string; readonly settings: string },
): Promise<void> {
  const { writeFileAtomic } = await import('@atoll/kit/atomic-file')
  const write = async (path: string, content: string, mode: number) => {
    await mkdir(dirname(path), { recursive: true })
    await writeFileAtomic(path, content, mode)
    printLine(stdout, `wrote ${path}`)
  }
  const settings = join(root, settingsFile)
  if (existsSync(settings)) printLine(stdout, `kept ${settings}: edit it to change settings`)
  else await write(settings, contents.settings, 0o600)
  await write(join(root, unitFile), contents.unit, 0o644)
}

/** Throws a fault if a server that is not the service uses the data directory: the service could not start. */
async function checkDataDir(dataDir: string): Promise<void> {
  const { lockDataDir } = await import('@atoll/server/lock')
  if (!existsSync(dataDir)) return
  await using _lock = await lockDataDir(dataDir)
}

const help = `
The service starts with the machine, and again whenever the server ends. Stopping it leaves
sandboxes running; \`atoll down\` after \`systemctl stop atoll\` ends them.

Settings of this shell (ATOLL_…, OTEL_…) go to /etc/atoll/atoll.env, readable by root only,
unless the file exists. Run the command again after moving the clone.

Example:
  ATOLL_LISTEN=0.0.0.0:3000 atoll service install`
