export type Route =
  | {
      readonly page:
        | 'now'
        | 'sandboxes'
        | 'wall'
        | 'recordings'
        | 'templates'
        | 'snapshots'
        | 'secrets'
        | 'team'
        | 'operator'
        | 'share'
        | 'sign-in'
    }
  | { readonly page: 'sandbox'; readonly id: string; readonly tab: SandboxTab }
  | { readonly page: 'recording'; readonly id: string }
  | { readonly page: 'template'; readonly id: string; readonly buildId: string | undefined }
  | { readonly page: 'unknown' }

export const sandboxTabs = [
  'overview',
  'terminal',
  'files',
  'logs',
  'network',
  'processes',
  'lineage',
] as const
export type SandboxTab = (typeof sandboxTabs)[number]

const plainPages = [
  'sandboxes',
  'wall',
  'recordings',
  'templates',
  'snapshots',
  'secrets',
  'team',
  'operator',
  'share',
  'sign-in',
] as const

export function parseRoute(path: string): Route {
  const [first = '', id, third, ...rest] = path.split('/').filter(Boolean).map(decode)
  if (rest.length > 0) return { page: 'unknown' }
  if (first === '') return { page: 'now' }
  if (first === 'sandboxes' && id !== undefined) {
    const tab = sandboxTabs.find((name) => name === (third ?? 'overview'))
    return tab ? { page: 'sandbox', id, tab } : { page: 'unknown' }
  }
  if (first === 'templates' && id !== undefined) return { page: 'template', id, buildId: third }
  if (first === 'recordings' && id !== undefined && third === undefined)
    return { page: 'recording', id }
  const page = plainPages.find((name) => name === first)
  return page && id === undefined ? { page } : { page: 'unknown' }
}

export function sandboxPath(id: string, tab: SandboxTab = 'overview'): string {
  return `/sandboxes/${encodeURIComponent(id)}${tab === 'overview' ? '' : `/${tab}`}`
}

export function templatePath(id: string, buildId?: string): string {
  const build = buildId === undefined ? '' : `/${encodeURIComponent(buildId)}`
  return `/templates/${encodeURIComponent(id)}${build}`
}

export function recordingPath(id: string): string {
  return `/recordings/${encodeURIComponent(id)}`
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
