import type { RequestListener, ServerResponse } from 'node:http'

const challengePath = /^\/\.well-known\/acme-challenge\/([A-Za-z0-9_-]{1,200})$/

/**
 * Answers plain HTTP on the port that browsers try first: with proofs for the CA, and with a redirect to HTTPS. Serves
 * nothing else, so no key and no cookie is of use here.
 */
export function createHttpRedirect(parts: {
  /** Host name without a port. */
  readonly domain: string
  /** Port that clients use for HTTPS. */
  readonly httpsPort: number
  /** Returns the proof for a token of the CA. */
  readonly findChallenge?: ((token: string) => string | undefined) | undefined
}): RequestListener {
  const { domain, httpsPort, findChallenge = () => undefined } = parts
  const port = httpsPort === 443 ? '' : `:${httpsPort}`
  return (req, res) => {
    const { url = '/', method = '' } = req
    const isRead = method === 'GET' || method === 'HEAD'
    const proof = isRead && findChallenge(challengePath.exec(url)?.[1] ?? '')
    if (typeof proof === 'string') return reply(res, 200, proof)
    const host = (req.headers.host ?? '').toLowerCase().replace(/:\d{1,5}$/, '')
    const isOurs = host === domain || (host.endsWith(`.${domain}`) && /^[a-z0-9.-]+$/.test(host))
    if (!isOurs || !url.startsWith('/')) return reply(res, 404, 'Nothing is served here\n')
    const target = `https://${host}${port}`
    // A redirect would let a client keep sending its key in plain text.
    if (!isRead) return reply(res, 403, `Use ${target}\n`)
    res.setHeader('Location', `${target}${url}`)
    reply(res, 308, `${target}\n`)
  }
}

function reply(res: ServerResponse, status: number, body: string): void {
  res.writeHead(status, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Cache-Control': 'no-store',
    Connection: 'close',
  })
  res.end(body)
}
