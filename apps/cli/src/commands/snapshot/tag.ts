import type { PlatformClient } from '@atoll/client/platform'
import { Command } from 'commander'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { UsageError } from '../../failure.ts'
import { formatRelative, formatTable } from '../../table.ts'

export function tagCommand(context: CliContext): Command {
  return new Command('tag')
    .description('give a snapshot tags, take them away, or list those under a name')
    .argument('<snapshot>', 'an id or a name, with or without a tag')
    .argument('[tags...]', 'from now on they mean this snapshot; without any, tags are listed')
    .option('-d, --delete', 'take these tags from the name; the snapshot itself stays')
    .option('--json', 'print the list as JSON')
    .addHelpText('after', help)
    .action((snapshot: string, tags: string[], options: TagOptions) =>
      tag(context, { snapshot, tags, ...options }),
    )
}

interface TagOptions {
  readonly delete?: boolean
  readonly json?: boolean
}

interface TagRequest extends TagOptions {
  readonly snapshot: string
  readonly tags: readonly string[]
}

async function tag(context: CliContext, request: TagRequest) {
  const { snapshot, tags } = request
  if (request.delete && tags.length === 0) throw new UsageError('Name the tags to take away.')
  const { platform } = await openPlatform(context)
  if (request.delete) {
    await platform.untagSnapshot(snapshot, tags)
    return printLine(context.stdout, `untagged ${snapshot}: ${tags.join(', ')}`)
  }
  if (tags.length > 0) {
    await platform.tagSnapshot(snapshot, tags)
    return printLine(context.stdout, `tagged ${snapshot}: ${tags.join(', ')}`)
  }
  await listTags(context, platform, request)
}

async function listTags({ stdout }: CliContext, platform: PlatformClient, request: TagRequest) {
  const found = await platform.listSnapshotTags(request.snapshot)
  if (request.json) return printJson(stdout, found)
  const now = new Date()
  const rows = found.map(({ tag: name, buildID, createdAt }) => [
    name,
    formatRelative(createdAt, now),
    buildID,
  ])
  printLine(stdout, formatTable(stdout, ['TAG', 'SET', 'BUILD'], rows))
}

const help = `
Tags of one name that show the same build mean the same snapshot. Where no tag is given,
\`default\` is meant.

Examples:
  atoll snapshot tag tools:v2 stable default
  atoll snapshot tag tools
  atoll snapshot tag --delete tools stable`
