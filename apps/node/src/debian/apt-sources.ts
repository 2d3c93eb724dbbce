import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'

/** apt archive, with the fields that both source formats support. */
export interface AptSource {
  readonly uris: readonly string[]
  readonly suites: readonly string[]
  readonly components: readonly string[]
  /** Path of a key file, or an inline key of several lines. */
  readonly signedBy?: string
  readonly trusted?: boolean
}

/** Reads all enabled binary archives of the machine, in apt's order. */
export async function readAptSources(aptDir = '/etc/apt'): Promise<AptSource[]> {
  const parts = join(aptDir, 'sources.list.d')
  const names = await readdir(parts).catch(absentAsEmpty([]))
  names.sort((a, b) => (a < b ? -1 : 1))
  const files = [join(aptDir, 'sources.list'), ...names.map((name) => join(parts, name))]
  const sources = await Promise.all(
    files.map(async (file) => {
      if (file.endsWith('.sources')) return parseDeb822(await readFile(file, 'utf8'))
      if (!file.endsWith('.list')) return []
      return parseOneLine(await readFile(file, 'utf8').catch(absentAsEmpty('')))
    }),
  )
  return sources.flat()
}

/** Finds the archive of a release itself, not its updates, security or backports. */
export function findRelease(
  sources: readonly AptSource[],
  codename: string,
): AptSource | undefined {
  return sources.find(({ suites }) => suites.includes(codename))
}

/** Parses stanzas of `Field: value` lines; a line that starts with a space continues the value. */
export function parseDeb822(text: string): AptSource[] {
  const lines = text.split('\n').filter((line) => !line.startsWith('#'))
  const stanzas = lines.join('\n').split(/\n\s*\n/)
  return stanzas.map(fieldsOf).flatMap((fields) => {
    const uris = words(fields.get('uris'))
    if (uris.length === 0 || !words(fields.get('types')).includes('deb')) return []
    if (isNo(fields.get('enabled'))) return []
    const signedBy = fields.get('signed-by')
    return [
      {
        uris,
        suites: words(fields.get('suites')),
        components: words(fields.get('components')),
        ...(signedBy && { signedBy }),
        ...(isYes(fields.get('trusted')) && { trusted: true }),
      },
    ]
  })
}

/** Parses lines such as `deb [signed-by=/path] URI suite component...`. */
export function parseOneLine(text: string): AptSource[] {
  return text.split('\n').flatMap((line) => {
    const match = /^\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+:\/\S*)\s+(\S+)([^#]*)/.exec(line)
    if (!match) return []
    const [, options, uri = '', suite = '', components] = match
    const option = new Map(words(options).map((word) => split(word, '=')))
    const signedBy = option.get('signed-by')
    return [
      {
        uris: [uri],
        suites: [suite],
        components: words(components),
        ...(signedBy && { signedBy }),
        ...(isYes(option.get('trusted')) && { trusted: true }),
      },
    ]
  })
}

export function formatDeb822(source: AptSource): string {
  const fields = [
    'Types: deb',
    `URIs: ${source.uris.join(' ')}`,
    `Suites: ${source.suites.join(' ')}`,
    ...(source.components.length > 0 ? [`Components: ${source.components.join(' ')}`] : []),
    ...(source.signedBy ? [`Signed-By:${startOfValue(source.signedBy)}`] : []),
    ...(source.trusted ? ['Trusted: yes'] : []),
  ]
  return `${fields.join('\n')}\n`
}

function fieldsOf(stanza: string): Map<string, string> {
  const fields = new Map<string, string>()
  let current = ''
  for (const line of stanza.split('\n')) {
    if (/^\s/.test(line)) {
      fields.set(current, `${fields.get(current) ?? ''}\n${line}`)
    } else if (line.includes(':')) {
      const [name, value] = split(line, ':')
      current = name.toLowerCase()
      fields.set(current, value.trim())
    }
  }
  return fields
}

/** Formats a value; a multi-line value starts on the line after its name. */
function startOfValue(value: string): string {
  return value.startsWith('\n') ? value : ` ${value}`
}

function words(text: string | undefined): string[] {
  return (text ?? '').split(/\s+/).filter(Boolean)
}

function split(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator)
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + separator.length)]
}

function isYes(value: string | undefined): boolean {
  return /^(yes|true|1|on)$/i.test(value ?? '')
}

function isNo(value: string | undefined): boolean {
  return /^(no|false|0|off)$/i.test(value ?? '')
}

function absentAsEmpty<T>(empty: T): (error: NodeJS.ErrnoException) => T {
  return (error) => {
    if (error.code === 'ENOENT') return empty
    throw error
  }
}
