import { Option } from 'commander'
import { parseSize } from '../../arguments.ts'
import { openPlatform, printLine } from '../../context.ts'
import type { CliContext, Connection } from '../../context.ts'
import { parsePlace } from '../../copy/place.ts'
import type { Place } from '../../copy/place.ts'
import { CliCommand } from '../../declare/command.ts'
import { UsageError } from '../../failure.ts'
import { openProgress } from '../../output/progress.ts'
import { formatSize } from '../../output/table.ts'
import { writeFully } from '../../stdio.ts'
import { openSandbox } from './open-sandbox.ts'

const defaultLimitBytes = 16 * 1024 ** 3

export function cpCommand(context: CliContext): CliCommand {
  return new CliCommand('cp')
    .description('copy files and folders into a sandbox or out of it')
    .argument('<source>', 'local path, <id>:<path>, or - for stdin')
    .argument('<target>', 'local path, <id>:<path>, or - for stdout')
    .option('-u, --user <name>', 'user in the sandbox who reads and owns the files (default: user)')
    .addOption(
      new Option('--max-size <size>', 'most to take from a sandbox: 500M, 20G')
        .argParser(parseSize)
        .default(defaultLimitBytes, '16G'),
    )
    .option('-q, --quiet', 'no progress')
    .details(help)
    .action((source: string, target: string, options: CpOptions) =>
      cp(context, { source: parsePlace(source), target: parsePlace(target), ...options }),
    )
}

interface CpOptions {
  readonly user?: string
  readonly maxSize: number
  readonly quiet?: boolean
}

interface CpRequest extends CpOptions {
  readonly source: Place
  readonly target: Place
}

async function cp(context: CliContext, request: CpRequest) {
  const { source, target } = request
  if (source.kind === 'sandbox' && target.kind !== 'sandbox')
    return copyOut(context, request, source, target)
  if (target.kind === 'sandbox' && source.kind !== 'sandbox')
    return copyIn(context, request, source, target)
  throw new UsageError(
    'Exactly one of source and target must be in a sandbox: write it as <id>:<path>.',
  )
}

type SandboxPlace = Extract<Place, { kind: 'sandbox' }>
type OtherPlace = Exclude<Place, SandboxPlace>

async function copyOut(
  context: CliContext,
  { user, maxSize, quiet }: CpRequest,
  source: SandboxPlace,
  target: OtherPlace,
) {
  const { downloadContent, downloadTo } = await import('../../copy/download.ts')
  const connection = await openPlatform(context)
  const sandbox = await reach(connection, source.sandboxId, user)
  const progress = openProgress(context.stderr)
  const download = {
    ...sandbox,
    source: source.path,
    limitBytes: maxSize,
    warn(message: string) {
      progress.clear()
      printLine(context.stderr, message)
    },
    onBytes(total: number, expected: number | undefined) {
      if (quiet || !context.stderr.isTTY) return
      progress.report(
        `${source.path}: ${formatSize(total)}`,
        total / Math.max(expected ?? Infinity, 1),
      )
    },
  }
  try {
    if (target.kind === 'local') await downloadTo(target.path, download)
    else await downloadContent(download, (bytes) => writeFully(context.stdout, bytes))
  } finally {
    progress.clear()
  }
}

async function copyIn(
  context: CliContext,
  { user, quiet }: CpRequest,
  source: OtherPlace,
  target: SandboxPlace,
) {
  const { uploadContent, uploadFrom } = await import('../../copy/upload.ts')
  const connection = await openPlatform(context)
  const sandbox = await reach(connection, target.sandboxId, user)
  const progress = openProgress(context.stderr)
  const onBytes = (sent: number, total: number) => {
    if (!quiet) progress.report(`uploading to ${target.path}`, sent / total)
  }
  try {
    const upload = { ...sandbox, target: target.path, onBytes }
    if (source.kind === 'local') await uploadFrom(source.path, upload)
    else await uploadContent(context.stdin, upload)
  } finally {
    progress.clear()
    context.stdin.destroy()
  }
}

async function reach({ access, platform }: Connection, id: string, user: string | undefined) {
  const { createSandboxFiles } = await import('@atoll/client/sandbox-files')
  const address = { ...(await openSandbox(platform, id)), user }
  return { access, address, files: createSandboxFiles({ url: access.sandboxUrl, ...address }) }
}

const help = `
A folder is copied with all its content. If the target is an existing folder, the copy gets
its name from the source; otherwise the target is the name of the copy. Relative paths of a
sandbox begin at the home of the user. Modes are kept, owners are not. A local path with a
colon needs ./ before it. The sandbox must have sh and tar for folders and for uploads.

Copies from a sandbox never leave the target folder: links that point outside of it, devices
and sockets are skipped with a warning, and unsafe paths end the copy.

Examples:
  atoll sandbox cp ./src <id>:/home/user/src
  atoll sandbox cp <id>:results.csv .
  atoll sandbox cp <id>:/etc/os-release - | head -1
  echo hello | atoll sandbox cp - <id>:greeting.txt`
