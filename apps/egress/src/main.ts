/**
 * Egress proxy: forwards TCP connections of sandboxes whose rules use names, a proxy or headers. Runs as a separate
 * process because it parses hostile bytes with few privileges, and so that connections survive a restart of the node
 * agent.
 *
 *     node main.ts SOCKET BUILD PORT
 *
 * PORT is the DNS port of the previous process, or 0.
 */
import { createDecisionCounts } from './app/decision-counts.ts'
import { createSandboxes } from './app/sandboxes.ts'
import type { Dialer } from './domain/route.ts'
import { startTcpListener } from './inbound/tcp-listener.ts'
import { startDnsServer } from './inbound/dns-server.ts'
import { createTerminator } from './inbound/terminator.ts'
import { serveControl } from './control/server.ts'
import { createDialer } from './net/dialer.ts'
import { createTlsDialer } from './net/tls-dialer.ts'

const [path = '', build = '', previousDnsPort = '0'] = process.argv.slice(2)
const sandboxes = createSandboxes()
const counts = createDecisionCounts()
let dialer: Dialer | undefined
let nameservers: readonly string[] = []

const port = await startTcpListener({
  sandboxes,
  counts,
  terminator: createTerminator(),
  dialer: () => dialer,
})
const dnsPort = await startDnsServer(
  { sandboxes, counts, nameservers: () => nameservers },
  Number(previousDnsPort),
)
await serveControl(path, (request) => {
  switch (request.kind) {
    case 'begin': {
      const { closedRanges, certificates } = request
      nameservers = request.nameservers
      dialer = createTlsDialer(createDialer({ nameservers, closedRanges }), certificates)
      sandboxes.replaceAll(closedRanges, request.sandboxes)
      break
    }
    case 'set':
      sandboxes.set(request.sandbox)
      break
    case 'count':
    case 'decisions':
    case 'denied':
      break
  }
  const answer = { build, pid: process.pid, port, namePort: dnsPort, counts }
  if (request.kind === 'decisions') {
    return { ...answer, decisions: sandboxes.decisions(request.address) }
  }
  if (request.kind === 'denied') {
    return { ...answer, denied: sandboxes.deniedSince(request.sinceMs) }
  }
  return answer
})
dropPrivileges()
process.stdout.write('ready\n')

/** Becomes the user `nobody`. Nothing after this needs privileges. */
function dropPrivileges(): void {
  const nobody = 65_534
  process.setgroups?.([])
  process.setgid?.(nobody)
  process.setuid?.(nobody)
}
