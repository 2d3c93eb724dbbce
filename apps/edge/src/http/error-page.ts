/**
 * Error page for browsers.
 *
 * Threats: text of the request (a path, a host) could be run as a script. All text is escaped, and the policy header
 * forbids scripts as well.
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

/** True for page loads of a browser. Programs, and scripts in a browser, get JSON. */
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
