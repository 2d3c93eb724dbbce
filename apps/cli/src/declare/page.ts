import { z } from 'zod'
import { loadConfig } from '../config.ts'
import type { CliContext } from '../context.ts'
import { declareProgram } from '../program.ts'
import { withDescendants } from './command.ts'
import type { CliCommand } from './command.ts'

/** Generates `docs/cli.md` from the declarations of the commands. */
export async function renderCliPage(): Promise<string> {
  const program = await declareProgram(unusedContext())
  const commands = withDescendants(program).filter(({ children }) => children.length === 0)
  const shapes = new Map<string, z.core.JSONSchema.JSONSchema>()
  const sections = commands.map((command) => renderCommand(command, shapes))
  return [
    '# Command line',
    intro,
    fence(program.detailsText),
    '## Commands',
    ['| command | what it does |', '| --- | --- |', ...commands.map(toRow)].join('\n'),
    ...sections,
    '## JSON output',
    jsonIntro,
    ...[...shapes].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(renderShape),
  ]
    .join('\n\n')
    .concat('\n')
}

/** Declarations need a context, but only running a command uses it. */
function unusedContext(): CliContext {
  const { stdin, stdout, stderr } = process
  return { stdin, stdout, stderr, process, config: loadConfig({}), exitWith: () => {} }
}

const intro = `\`bin/atoll\` of the clone. \`npm run generate\` makes this page from the declarations of the commands, which also give
\`--help\` and the shell completion (\`atoll completion bash\`, \`zsh\` or \`fish\`). Put the clone's \`bin\` into \`PATH\` to write \`atoll\`.

Text that comes from sandboxes, builds and the server is printed with its control characters and invisible characters as escapes,
such as \`\\x1b\`. The output of \`sandbox exec\` and \`sandbox shell\`, and files that \`sandbox cp\` writes to \`-\`, stay as they are.`

const jsonIntro = `Commands with \`--json\` print one JSON value on stdout; progress and logs go to stderr. \`--follow\` prints one JSON object per line. A
release may add properties, but does not remove or change these. A property with \`?\` may be absent.`

function toRow(command: CliCommand): string {
  return `| [\`${command.path}\`](#${anchor(command.path)}) | ${cell(command.description())} |`
}

function anchor(path: string): string {
  return path.replaceAll(' ', '-')
}

function renderCommand(
  command: CliCommand,
  shapes: Map<string, z.core.JSONSchema.JSONSchema>,
): string {
  const usage = `${command.path} ${command.usage()}`.trim()
  const aliases = command.aliases().map((alias) => `\`${alias}\``)
  const parts = [
    `### ${command.path}`,
    `${sentence(command.description())}${aliases.length > 0 ? ` Alias: ${aliases.join(', ')}.` : ''}`,
    fence(usage),
    table(
      ['argument', 'meaning'],
      command.registeredArguments.map((argument) => [
        `\`${argument.name()}\``,
        command.createHelp().argumentDescription(argument),
      ]),
    ),
    table(
      ['option', 'meaning'],
      command.options.map((option) => [
        `\`${option.flags}\``,
        command.createHelp().optionDescription(option),
      ]),
    ),
    command.jsonShape ? `JSON: ${nameOf(command.jsonShape, shapes)}.` : '',
    command.detailsText === '' ? '' : fence(command.detailsText),
  ]
  return parts.filter((part) => part !== '').join('\n\n')
}

function nameOf(shape: z.ZodType, shapes: Map<string, z.core.JSONSchema.JSONSchema>): string {
  const schema = z.toJSONSchema(shape, { io: 'output', unrepresentable: 'any', reused: 'inline' })
  for (const [id, defined] of Object.entries(schema.$defs ?? {})) shapes.set(id, defined)
  const { id } = z.globalRegistry.get(shape) ?? {}
  if (id !== undefined) {
    if (!shapes.has(id)) shapes.set(id, schema)
    return link(id)
  }
  return typeName(schema)
}

type Schema = z.core.JSONSchema._JSONSchema | z.core.JSONSchema._JSONSchema[] | undefined

function typeName(schema: Schema): string {
  if (typeof schema !== 'object' || Array.isArray(schema)) return 'any'
  const reference = schema.$ref?.split('/').at(-1) ?? schema.id
  if (reference !== undefined) return link(reference)
  if (schema.enum) return schema.enum.map((value) => `\`${JSON.stringify(value)}\``).join(', ')
  if (schema.anyOf) return schema.anyOf.map(typeName).join(' or ')
  if (schema.type === 'array') return `array of ${typeName(schema.items)}`
  if (schema.properties) return `object (${Object.keys(schema.properties).join(', ')})`
  if (schema.additionalProperties) return `object of ${typeName(schema.additionalProperties)}`
  if (schema.format === 'date-time') return 'time (ISO 8601)'
  return [schema.type ?? 'any'].flat().join(' or ')
}

function link(id: string): string {
  return `[\`${id}\`](#${id.toLowerCase()})`
}

function renderShape([id, schema]: [string, z.core.JSONSchema.JSONSchema]): string {
  const required = new Set(schema.required)
  const rows = Object.entries(schema.properties ?? {}).map(([name, property]) => {
    const description = typeof property === 'object' ? (property.description ?? '') : ''
    return [`\`${name}${required.has(name) ? '' : '?'}\``, typeName(property), description]
  })
  return `### ${id}\n\n${table(['property', 'type', 'meaning'], rows)}`
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return ''
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

function cell(text: string): string {
  return text.replaceAll('|', String.raw`\|`).replaceAll('\n', ' ')
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}

function fence(text: string): string {
  return `\`\`\`text\n${text}\n\`\`\``
}
