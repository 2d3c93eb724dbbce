/**
 * Header rules for hosts that sandboxes share with the platform API and with each other: requests that name their
 * sandbox by header or signature instead of by host name.
 *
 * Threats: a browser treats such a response as content of the API's origin. A sandbox could run scripts there, keep
 * state in the browser for that origin, ask the user for a password in its name, or put its response into a cache under
 * a URL of the API. So `Content-Security-Policy: sandbox` gives the document an opaque origin without scripts, and
 * headers that browsers or caches store for the origin are dropped. CORS headers pass: they expose only the response of
 * the sandbox, and the API never uses cookies as credentials.
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

const droppedFromResponses: ReadonlySet<string> = new Set([
  ...keptByBrowsers,
  ...readByCaches,
  asksForPasswords,
  noSniff.toLowerCase(),
])

/** Expects the lower-case name of a header or trailer. */
export function isDroppedFromRequest(name: string): boolean {
  return droppedFromRequests.has(name)
}

/** Expects the lower-case name of a header or trailer. `cdn-cache-control` may have the name of a CDN as prefix. */
export function isDroppedFromResponse(name: string): boolean {
  return droppedFromResponses.has(name) || name.endsWith('cdn-cache-control')
}

/** Flat list of names and values. Policies only restrict each other, so the policy of the sandbox may stay. */
export const sharedHostHeaders: readonly string[] = [
  'Content-Security-Policy',
  'sandbox',
  noSniff,
  'nosniff',
  'Cache-Control',
  'no-store',
]
