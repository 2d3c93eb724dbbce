/** A caller of another release: it names another version, and sends fields and calls methods that this release lacks. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { protocolHeader, protocolVersion } from '@atoll/contracts/fleet'
import { GetSandboxRequestSchema, NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { silentLogger } from '@atoll/kit/log'
import { simulateNode } from '@atoll/simulated-node/node'
import { create } from '@bufbuild/protobuf'
import { Code, ConnectError, createClient } from '@connectrpc/connect'
import type { Interceptor } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { createAuthority } from '../identity/authority.ts'
import { holdIdentity, issueIdentity } from '../identity/identity.ts'
import { forwardNode } from './forward.ts'
import { startPeerListener } from './listener.ts'
import { baseUrl, createPeerSession } from './session.ts'

const authority = createAuthority(new Date())
const identityOf = (role: 'api' | 'node') =>
  holdIdentity(issueIdentity(authority, { role, id: role }, new Date()))

/** Connects to a node as an api that names this version. */
async function connectAs(t: TestContext, version: string | undefined) {
  const node = simulateNode()
  const listener = await startPeerListener({
    listen: { host: '127.0.0.1', port: 0 },
    identity: identityOf('node'),
    log: silentLogger,
    routes: (router) => forwardNode(router, node.transport),
    mayCall: (caller) => caller?.role === 'api',
    isRemoved: () => false,
  })
  t.after(() => listener.close())
  const { address } = listener
  const expected = { role: 'node' } as const
  const session = createPeerSession({ address, identity: identityOf('api'), expected })
  t.after(() => session.close())
  const nameVersion: Interceptor = (next) => (request) => {
    if (version !== undefined) request.header.set(protocolHeader, version)
    return next(request)
  }
  const transport = createConnectTransport({
    httpVersion: '2',
    baseUrl,
    sessionManager: session,
    interceptors: [nameVersion],
  })
  return { node, transport, client: createClient(NodeService, transport) }
}

test('a newer part is understood, and what this release does not know is ignored', async (t) => {
  const { node, client } = await connectAs(t, String(protocolVersion + 1))
  node.addOrphan('one')
  const request = create(GetSandboxRequestSchema, { sandboxId: 'one' })
  // oxlint-disable-next-line typescript/no-unsafe-enum-assignment -- the package has two copies of this enum
  request.$unknown = [{ no: 999, wireType: 0, data: Uint8Array.of(1) }]
  assert.equal((await client.getSandbox(request)).sandbox?.sandboxId, 'one')
})

test('a newer part learns that this release lacks a method', async (t) => {
  const { transport } = await connectAs(t, String(protocolVersion + 1))
  const { getNode } = NodeService.method
  const unknown: typeof getNode = Object.create(getNode, { name: { value: 'GetFuture' } })
  // oxlint-disable-next-line typescript/no-unsafe-enum-assignment -- the same enums, compared by the rule within a recursive type
  const call = transport.unary(unknown, undefined, undefined, undefined, {})
  await assert.rejects(call, (error) => ConnectError.from(error).code === Code.Unimplemented)
})

for (const version of [undefined, '0', 'x']) {
  test(`a part that names the version ${version} is refused, with advice to upgrade`, async (t) => {
    const { client } = await connectAs(t, version)
    await assert.rejects(client.getNode({}), (error) => {
      const { code, rawMessage } = ConnectError.from(error)
      return code === Code.FailedPrecondition && rawMessage.includes('upgrade the caller')
    })
  })
}
