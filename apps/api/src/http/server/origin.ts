import type { FastifyRequest } from 'fastify'

/** Returns the origin that the client used, such as `https://api.example.com`, even behind a TLS-terminating proxy. */
export function originOf({ headers, protocol }: FastifyRequest): string {
  const forwarded = [headers['x-forwarded-proto']].flat()[0]?.split(',')[0]?.trim()
  const scheme = forwarded === 'http' || forwarded === 'https' ? forwarded : protocol
  const host = headers.host ?? ''
  return `${scheme}://${isHost.test(host) ? host : 'localhost'}`
}

const isHost = /^[\w.-]+(:\d{1,5})?$|^\[[0-9a-fA-F:.]+\](:\d{1,5})?$/
