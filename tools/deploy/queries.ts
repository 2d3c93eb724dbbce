/** Finds PromQL queries in the files of `deploy`, and metrics in queries. */

export function queriesIn(path: string, content: string): string[] {
  if (path.endsWith('.json')) {
    const queries: string[] = []
    JSON.parse(content, (key, value: unknown) => {
      if (key === 'expr') queries.push(String(value))
      return value
    })
    return queries
  }
  // `expr: query` on one line, or `expr: |` with a deeper block below.
  return [...content.matchAll(/^( *)expr: (?:\|\n((?:\1 +.*\n)+)|(.*)\n)/gm)].map(
    ([, , block, line]) => block ?? line ?? '',
  )
}

const words = new Set(['and', 'or', 'unless', 'bool', 'by', 'without', 'on', 'ignoring'])

/** Returns the metrics of a query: identifiers outside of labels, ranges, groupings and function calls. */
export function metricsIn(query: string): string[] {
  const bare = query
    .replaceAll(/"(?:[^"\\]|\\.)*"/g, '')
    .replaceAll(/\{[^}]*\}|\[[^\]]*\]/g, '')
    .replaceAll(/\b(?:by|without|on|ignoring)\s*\([^)]*\)/g, '')
  const names = [...bare.matchAll(/\b([a-z_:][\w:]*)\b(?!\s*\()/gi)].map(([, name = '']) => name)
  return [...new Set(names)].filter((name) => !words.has(name))
}
