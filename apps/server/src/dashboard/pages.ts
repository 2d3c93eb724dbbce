import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { gunzipSync } from 'node:zlib'
import type { DashboardBundle } from '@atoll/dashboard/build'
import { baseHeaders, inertPolicy, pagePolicy, sendJson } from './responses.ts'

/** Serves the page and its assets from memory. Every path without a file is the page, which routes by itself. */
export function createPages(bundle: DashboardBundle) {
  const assets = new Map(bundle.assets.map((asset) => [asset.path, asset]))

  const sendAsset = (req: IncomingMessage, res: ServerResponse, path: string) => {
    const asset = assets.get(path)
    if (!asset) return sendJson(res, 404, { code: 404, message: `There is no ${path}` })
    const takesGzip = /\bgzip\b/.test(req.headers['accept-encoding'] ?? '')
    const gzipped = Buffer.from(asset.gzip, 'base64')
    res.writeHead(200, {
      ...baseHeaders,
      'Content-Security-Policy': inertPolicy,
      'Content-Type': asset.type,
      // The name has a hash of the content.
      'Cache-Control': 'public, max-age=31536000, immutable',
      Vary: 'Accept-Encoding',
      ...(takesGzip && { 'Content-Encoding': 'gzip' }),
    })
    res.end(takesGzip ? gzipped : gunzipSync(gzipped))
  }

  const sendPage = (res: ServerResponse) => {
    const nonce = randomBytes(16).toString('base64url')
    res.writeHead(200, {
      ...baseHeaders,
      'Content-Security-Policy': pagePolicy(nonce),
      'Content-Type': 'text/html; charset=utf-8',
      'Cache-Control': 'no-store',
    })
    res.end(renderPage(bundle, nonce))
  }

  return (req: IncomingMessage, res: ServerResponse, path: string): void => {
    if (req.method !== 'GET' && req.method !== 'HEAD') {
      return sendJson(
        res,
        405,
        { code: 405, message: 'Only GET is allowed here' },
        { Allow: 'GET' },
      )
    }
    if (path.startsWith('/assets/')) sendAsset(req, res, path)
    else sendPage(res)
  }
}

function renderPage({ script, style }: DashboardBundle, nonce: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="csp-nonce" nonce="${nonce}">
<title>Atoll</title>
<link rel="icon" href="/assets/icon.svg">
<link rel="stylesheet" href="${style}">
<script type="module" src="${script}"></script>
</head>
<body><div id="app"></div><noscript>The dashboard needs JavaScript.</noscript></body>
</html>
`
}
