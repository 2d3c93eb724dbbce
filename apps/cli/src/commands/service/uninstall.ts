import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { settingsFile, unitFile } from '../../service/unit.ts'

interface Options {
  readonly root?: string
}

export function uninstallCommand(context: CliContext): CliCommand {
  return new CliCommand('uninstall')
    .description('stop the service and remove its unit; sandboxes, data and settings stay')
    .option('--root <directory>', 'remove it from the file tree of another system')
    .action((options: Options) => uninstall(context, options))
}

async function uninstall({ stdout }: CliContext, { root }: Options) {
  const path = join(root ?? '/', unitFile)
  if (!existsSync(path)) return printLine(stdout, `nothing to remove: ${path} does not exist`)
  const { openFileTree, openSystemd } = await import('../../service/service-manager.ts')
  const manager = root === undefined ? openSystemd() : openFileTree(root)
  await manager.running?.stop()
  await manager.disable()
  await rm(path)
  await manager.reload()
  printLine(stdout, `removed ${path}`)
  printLine(stdout, `kept ${join(root ?? '/', settingsFile)}, all data and running sandboxes`)
}
