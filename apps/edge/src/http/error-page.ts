/**
 * The page a person sees in a browser when there is nothing to pass on.
 *
 * Threats: text of the request (a path, a host) that a browser would run. All of it is escaped, and the
 * policy header sent along forbids scripts anyway.
 */
import type { IncomingHttpHeaders } from 'node:http'

export interface ErrorPage {
  readonly title: string
  readonly text: string
}

export function renderErrorPage({ title, text }: ErrorPage): string {
  return `<html lang="en"><head><meta charset="utf-8"><title>${escapeHtml(title)}</title><style>${style}</style></head>
<body><main><h1>${escapeHtml(title)}</h1><p>${escapeHtml(text)}</p></main></body></html>`
}

const style =
  'body{font:16px/1.5 system-ui,sans-serif;display:grid;place-items:center;min-height:90vh;margin:0}' +
  'main{max-width:34rem;padding:1rem}h1{font-size:1.4rem}' +
  '@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}}'

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? '')
}

/** Pages are for people: scripts and programs get JSON, also those that run in a browser. */
export function wantsPage(headers: IncomingHttpHeaders): boolean {
  const accept = (headers.accept ?? '').toLowerCase()
  if (accept.includes('application/json') && !accept.includes('text/html')) return false
  const mode = headers['sec-fetch-mode']
  const byScript =
    mode === undefined ? headers['x-requested-with'] !== undefined : scriptModes.has(mode)
  return !byScript && browsers.test(headers['user-agent'] ?? '')
}

const scriptModes = new Set(['cors', 'no-cors', 'same-origin', 'websocket'])
const browsers = /mozilla|chrome|safari|firefox|edge|opera|msie/i
