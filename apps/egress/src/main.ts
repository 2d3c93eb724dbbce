/**
 * The egress process: all TCP that leaves sandboxes whose rules speak of names, of a proxy or of headers. A process of its
 * own, since it handles hostile bytes and has few rights, and connections outlive a restart of the agent.
 *
 *   node main.ts SOCKET BUILD PORT
 *
 * PORT is where names were asked for before, 0 if that is not known.
 */
import { createSandboxes } from './app/sandboxes.ts'
import type { Dialer } from './domain/way.ts'
import { openDoorway } from './inbound/doorway.ts'
import { openNames } from './inbound/names.ts'
import { createTerminator } from './inbound/terminator.ts'
import { serveControl } from './control/server.ts'
import { createDialer } from './net/dial.ts'
import { createSecureDialer } from './net/dial-secure.ts'

const [path = '', build = '', lastNamePort = '0'] = process.argv.slice(2)
const sandboxes = createSandboxes()
let dialer: Dialer | undefined
let nameservers: readonly string[] = []

const port = await openDoorway({
  sandboxes,
  terminator: createTerminator(),
  dialer: () => dialer,
})
const namePort = await openNames(sandboxes, () => nameservers, Number(lastNamePort))
await serveControl(path, (request) => {
  switch (request.kind) {
    case 'begin': {
      const { closedRanges, certificates } = request
      nameservers = request.nameservers
      dialer = createSecureDialer(createDialer({ nameservers, closedRanges }), certificates)
      sandboxes.begin(closedRanges, request.sandboxes)
      break
    }
    case 'set':
      sandboxes.set(request.sandbox)
  }
  return { build, pid: process.pid, port, namePort }
})
giveUpRights()
process.stdout.write('ready\n')

/** Nothing after this needs them. */
function giveUpRights(): void {
  const nobody = 65_534
  process.setgroups?.([])
  process.setgid?.(nobody)
  process.setuid?.(nobody)
}
