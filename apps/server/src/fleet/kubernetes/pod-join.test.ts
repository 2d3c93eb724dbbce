/** Pods join a real api over TLS, with tokens that a simulated Kubernetes API server reviews. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { silentLogger } from '@atoll/kit/log'
import { loadServerConfig } from '../../config.ts'
import { formatListenAddress } from '../../listen-address.ts'
import { simulateCluster } from '../../sim/cluster.ts'
import { createAuthority } from '../identity/authority.ts'
import type { MemberRole } from '../identity/join-token.ts'
import { joinAtStart } from '../parts/join-at-start.ts'
import { startApiPart } from '../parts/start-api.ts'
import { parseAccounts } from './accounts.ts'

async function openFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-pods-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}

async function startCluster(t: TestContext) {
  const cluster = await simulateCluster()
  t.after(() => cluster.close())
  const folder = await openFolder(t)
  const authority = createAuthority(new Date())
  const caFile = join(folder, 'ca.pem')
  await writeFile(caFile, `${authority.certificate}${authority.key}`)
  const config = loadServerConfig({
    ATOLL_DATA_DIR: folder,
    ATOLL_LISTEN: '127.0.0.1:0',
    ATOLL_FLEET_LISTEN: '127.0.0.1:0',
    ATOLL_FLEET_CA_FILE: caFile,
    ATOLL_FLEET_KUBERNETES_ACCOUNTS: 'node=atoll/nodes,edge=atoll/edges',
    KUBERNETES_SERVICE_HOST: 'localhost',
    KUBERNETES_SERVICE_PORT: String(cluster.port),
  })
  const { accountDir } = cluster
  const api = await startApiPart(config, silentLogger, { accountDir })
  t.after(() => api.close())
  const place = formatListenAddress(api.fleetAddress)
  return { cluster, certificate: authority.certificate, place }
}

/** Starts a pod with an empty data directory. Returns the identity that the part joined with. */
async function joinFrom(
  t: TestContext,
  fleet: { readonly certificate: string; readonly place: string },
  pod: { readonly token: string; readonly role: MemberRole },
) {
  const folder = await openFolder(t)
  await writeFile(join(folder, 'token'), `${pod.token}\n`)
  await writeFile(join(folder, 'ca.crt'), fleet.certificate)
  const config = loadServerConfig({
    ATOLL_DATA_DIR: join(folder, 'data'),
    // Nothing listens on port 1: the part tries the next api.
    ATOLL_FLEET_APIS: `127.0.0.1:1,${fleet.place}`,
    ATOLL_FLEET_JOIN_TOKEN_FILE: join(folder, 'token'),
    ATOLL_FLEET_CA_FILE: join(folder, 'ca.crt'),
  })
  return joinAtStart(config, pod.role, silentLogger)
}

test('a pod joins once, in the role of its service account', async (t) => {
  const fleet = await startCluster(t)
  const token = fleet.cluster.addPod({ account: 'atoll:nodes', uid: 'pod-1' })
  await assert.rejects(joinFrom(t, fleet, { token, role: 'edge' }), /may not join as edge/)
  const identity = await joinFrom(t, fleet, { token, role: 'node' })
  assert.equal(identity?.role, 'node')
  assert.match(identity.certificate, /BEGIN CERTIFICATE/)
  await assert.rejects(joinFrom(t, fleet, { token, role: 'node' }), /wrong, used or expired/)
  const renewed = fleet.cluster.addPod({ account: 'atoll:nodes', uid: 'pod-1' })
  await assert.rejects(joinFrom(t, fleet, { token: renewed, role: 'node' }), /used or expired/)
  const edge = fleet.cluster.addPod({ account: 'atoll:edges', uid: 'pod-2' })
  assert.equal((await joinFrom(t, fleet, { token: edge, role: 'edge' }))?.role, 'edge')
})

test('of many parts with the token of one pod, one joins', async (t) => {
  const fleet = await startCluster(t)
  const token = fleet.cluster.addPod({ account: 'atoll:edges', uid: 'pod-1' })
  const attempts = Array.from({ length: 4 }, () => joinFrom(t, fleet, { token, role: 'edge' }))
  const outcomes = await Promise.allSettled(attempts)
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
})

test('tokens of other accounts, other audiences, no pod or no cluster do not join', async (t) => {
  const fleet = await startCluster(t)
  const { cluster } = fleet
  const role = 'node'
  const other = cluster.addPod({ account: 'default:nodes', uid: 'pod-1' })
  await assert.rejects(joinFrom(t, fleet, { token: other, role }), /default\/nodes may not join/)
  const audience = cluster.addPod({ account: 'atoll:nodes', uid: 'pod-2', audience: 'vault' })
  await assert.rejects(joinFrom(t, fleet, { token: audience, role }), /not valid for this cluster/)
  const unbound = cluster.addPod({ account: 'atoll:nodes' })
  await assert.rejects(joinFrom(t, fleet, { token: unbound, role }), /not bound to a pod/)
  await assert.rejects(joinFrom(t, fleet, { token: 'a.b.c', role }), /not valid for this cluster/)
  cluster.failWith(500)
  const good = cluster.addPod({ account: 'atoll:nodes', uid: 'pod-3' })
  await assert.rejects(joinFrom(t, fleet, { token: good, role }), /did not review the token/)
})

test('a pod sends its token to no api of another fleet', async (t) => {
  const [fleet, other] = [await startCluster(t), await startCluster(t)]
  const token = fleet.cluster.addPod({ account: 'atoll:nodes', uid: 'pod-1' })
  const astray = { certificate: fleet.certificate, place: other.place }
  await assert.rejects(joinFrom(t, astray, { token, role: 'node' }), /token was not sent/)
  assert.equal((await joinFrom(t, fleet, { token, role: 'node' }))?.role, 'node')
})

test('accounts need a role, and an account has one role', () => {
  assert.deepEqual(
    [...(parseAccounts('node=a/b,edge=a/c') ?? [])],
    [
      ['a/b', 'node'],
      ['a/c', 'edge'],
    ],
  )
  for (const text of ['', 'api=a/b', 'node=a', 'node=a/b,edge=a/b', 'node=A/b'])
    assert.equal(parseAccounts(text), undefined, text)
})
