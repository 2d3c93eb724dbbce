import type { TreeFilter } from '../tar/local-tree.ts'

/** Patterns of `.dockerignore` and of COPY sources, by the rules of Docker. */

export function readIgnore(text: string): TreeFilter {
  const rules = text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const isException = line.startsWith('!')
      const pattern = (isException ? line.slice(1) : line).trim().replace(/^\/+|\/+$/g, '')
      return { isException, matcher: toMatcher(pattern.replace(/^\.\//, '')) }
    })
  return {
    hasExceptions: rules.some(({ isException }) => isException),
    excludes(path) {
      const candidates = withParents(path)
      const last = rules.findLast(({ matcher }) => candidates.some((each) => matcher.test(each)))
      return last !== undefined && !last.isException
    },
  }
}

/** A pattern that matches a folder also matches all that it contains. */
function withParents(path: string): string[] {
  const parts = path.split('/')
  return parts.map((_part, index) => parts.slice(0, index + 1).join('/'))
}

export function hasWildcard(pattern: string): boolean {
  return /[*?[]/.test(pattern)
}

/** `*` and `?` do not match `/`; `**` matches any number of folders. */
export function toMatcher(pattern: string): RegExp {
  let source = ''
  for (let at = 0; at < pattern.length; at += 1) {
    const rest = pattern.slice(at)
    const [folders] = /^\*\*\/?/.exec(rest) ?? []
    const [group] = /^\[\^?[^\]/]+\]/.exec(rest) ?? []
    if (folders !== undefined) {
      source += folders.endsWith('/') ? '(?:.*/)?' : '.*'
      at += folders.length - 1
    } else if (group !== undefined) {
      source += `[${group.slice(1, -1).replaceAll(/[\\[]/g, String.raw`\$&`)}]`
      at += group.length - 1
    } else if (rest.startsWith('\\') && rest.length > 1) {
      source += RegExp.escape(rest.charAt(1))
      at += 1
    } else {
      source += wildcards.get(rest.charAt(0)) ?? RegExp.escape(rest.charAt(0))
    }
  }
  return new RegExp(`^${source}$`, 's')
}

const wildcards: ReadonlyMap<string, string> = new Map([
  ['*', '[^/]*'],
  ['?', '[^/]'],
])
