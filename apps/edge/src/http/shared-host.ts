/**
 * Header rules for hosts that sandboxes share with the platform API and with each other: requests that name their sandbox
 * by header or by a signature instead of a host name of its own.
 *
 * Threats: a browser takes such an answer for content of the API's origin. A sandbox could run scripts there, keep state in
 * the browser for that origin, ask the user for a password in its name, or leave its answer in a cache under a URL of the
 * API. So the document is sandboxed by `Content-Security-Policy`, which gives it an origin of its own and no scripts, and
 * what a browser or cache would keep for the origin is dropped. CORS headers pass: they open the answer of the sandbox
 * alone, and credentials of the API are never cookies.
 */
const droppedFromRequests: ReadonlySet<string> = new Set(['cookie', 'cookie2'])

const keptByBrowsers = [
  'accept-ch',
  'accept-ch-lifetime',
  'alt-svc',
  'clear-site-data',
  'critical-ch',
  'expect-ct',
  'nel',
  'origin-agent-cluster',
  'public-key-pins',
  'public-key-pins-report-only',
  'report-to',
  'reporting-endpoints',
  'sec-session-registration',
  'secure-session-registration',
  'service-worker-allowed',
  'set-cookie',
  'set-cookie2',
  'set-login',
  'strict-transport-security',
  'use-as-dictionary',
]
const readByCaches = ['cache-control', 'expires', 'pragma', 'surrogate-control']
const asksForPasswords = 'www-authenticate'
const noSniff = 'X-Content-Type-Options'

const droppedFromAnswers: ReadonlySet<string> = new Set([
  ...keptByBrowsers,
  ...readByCaches,
  asksForPasswords,
  noSniff.toLowerCase(),
])

/** Takes lower-case names, of headers and trailers. */
export function isDroppedFromRequest(name: string): boolean {
  return droppedFromRequests.has(name)
}

/** Takes lower-case names, of headers and trailers. `cdn-cache-control` also comes with the name of a CDN before it. */
export function isDroppedFromAnswer(name: string): boolean {
  return droppedFromAnswers.has(name) || name.endsWith('cdn-cache-control')
}

/** A flat list of names and values. A second policy only ever restricts the first, so that of the sandbox may stay. */
export const answerHeaders: readonly string[] = [
  'Content-Security-Policy',
  'sandbox',
  noSniff,
  'nosniff',
  'Cache-Control',
  'no-store',
]
